/* A recursive mutex: the inner section ends nothing. */
#define _GNU_SOURCE
#include <pthread.h>
#include "explored.h"

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int value = 1;

static void twice(void) {
  pthread_mutex_lock(&lock);
  value = value * 2;
  pthread_mutex_unlock(&lock);
}
static void *left(void *unused) {
  pthread_mutex_lock(&lock);
  twice();
  value = value + 1;
  pthread_mutex_unlock(&lock);
  return unused;
}
static void *right(void *unused) {
  twice();
  twice();
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
