/* A lock that is spun for. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static atomic_flag lock = ATOMIC_FLAG_INIT;
static int value = 1;

static void change(int factor, int summand) {
  while (atomic_flag_test_and_set(&lock)) {}
  value = value * factor + summand;
  atomic_flag_clear(&lock);
}
static void *left(void *unused) {
  change(2, 0);
  return unused;
}
static void *right(void *unused) {
  change(1, 3);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, left, NULL);
  pthread_create(&threads[1], NULL, right, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(value);
  return 0;
}
