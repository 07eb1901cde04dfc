/* A lock of compare-and-swap. Unsafe. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>


atomic_int word;
int shared;
void *work(void *arg) {
  int free = 0;
  while (!atomic_compare_exchange_strong(&word, &free, 1)) free = 0;
  shared++;
  word = 0; shared++;
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(shared == 4);
  return 0;
}
