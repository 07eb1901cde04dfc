/* Threads that create threads. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static atomic_int value = 1;

static void *leaf(void *summand) {
  int old = value;
  value = old + (int)(long)summand;
  return NULL;
}
static void *branch(void *summand) {
  pthread_t child;
  pthread_create(&child, NULL, leaf, summand);
  int old = value;
  pthread_join(child, NULL);
  if (old == 1) value = value * 2;
  return NULL;
}

int main(void) {
  pthread_t threads[1];
  pthread_create(&threads[0], NULL, branch, (void *)1);
  for (int i = 0; i < 1; i++) pthread_join(threads[i], NULL);
  END_STATE(value);
  return 0;
}
