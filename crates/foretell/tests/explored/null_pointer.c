/* A pointer is cleared between its check and its use. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static int data = 3;
static int *_Atomic pointer = &data;
static int seen;

static void *user(void *unused) {
  if (pointer != NULL) seen = *pointer;
  return unused;
}
static void *clearer(void *unused) {
  pointer = NULL;
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, user, NULL);
  pthread_create(&threads[1], NULL, clearer, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(seen);
  return 0;
}
