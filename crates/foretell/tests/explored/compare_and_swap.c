/* A loop of compare and swap. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static atomic_int value = 1;

static void change(int factor, int summand) {
  int old = value;
  while (!atomic_compare_exchange_strong(&value, &old, old * factor + summand)) {}
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
