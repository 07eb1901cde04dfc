/* Threads share the bits of one word, each its own, without a lock. Unsafe. */
#include <assert.h>
#include <pthread.h>

struct {
  unsigned low : 3;
  int high : 5;
} word;

void *lows(void *arg) {
  word.low = 1;
  return 0;
}

void *highs(void *arg) {
  word.high = -1;
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
