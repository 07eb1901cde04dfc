/* A flag says that the data is there; the reader looks once. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static atomic_int data, ready;
static int seen = 7;

static void *writer(void *unused) {
  data = 1;
  ready = 1;
  data = 2;
  return unused;
}
static void *reader(void *unused) {
  if (ready) seen = data;
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, writer, NULL);
  pthread_create(&threads[1], NULL, reader, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(seen);
  return 0;
}
