/* Single bits, set and cleared atomically. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static atomic_uint bits = 4;
static unsigned before;

static void *set(void *unused) {
  atomic_fetch_or(&bits, 1);
  atomic_fetch_xor(&bits, 2);
  return unused;
}
static void *clear(void *unused) {
  before = atomic_fetch_and(&bits, 2);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, set, NULL);
  pthread_create(&threads[1], NULL, clear, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(before * 10 + bits);
  return 0;
}
