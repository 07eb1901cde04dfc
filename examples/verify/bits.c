/* Threads share the bits of one word under a lock. Safe. */
#include <assert.h>
#include <pthread.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

struct {
  unsigned low : 3;
  int high : 5;
} word;

void *lows(void *arg) {
  pthread_mutex_lock(&m);
  word.low = 9;
  pthread_mutex_unlock(&m);
  return 0;
}

void *highs(void *arg) {
  pthread_mutex_lock(&m);
  word.high--;
  pthread_mutex_unlock(&m);
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, lows, 0);
  pthread_create(&b, 0, highs, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(word.low == 1 && word.high == -1);
  return 0;
}
