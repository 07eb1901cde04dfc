/* What a pointer points to is decided by another thread. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static int a = 1, b = 2;
static int *_Atomic pointer = &a;

static void *writer(void *unused) {
  *pointer = 7;
  return unused;
}
static void *chooser(void *unused) {
  pointer = &b;
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, writer, NULL);
  pthread_create(&threads[1], NULL, chooser, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(a * 10 + b);
  return 0;
}
