/* Each thread sets a bit of a word. Safe. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

_Atomic unsigned word;
#define SET(b) atomic_fetch_or(&word, b)

void *worker(void *arg) {
  unsigned bit = 1u << (long)arg;
  SET(bit);
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, worker, (void *)3l);
  pthread_create(&b, 0, worker, (void *)4l);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(word == 24);
  return 0;
}
