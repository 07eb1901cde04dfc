/* A barrier for three where sometimes only two come. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static pthread_barrier_t barrier;
static atomic_int skip;

static void *worker(void *unused) {
  if (!skip) pthread_barrier_wait(&barrier);
  return unused;
}
static void *skipper(void *unused) {
  skip = 1;
  return unused;
}

int main(void) {
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, worker, NULL);
  pthread_create(&threads[1], NULL, worker, NULL);
  pthread_create(&threads[2], NULL, skipper, NULL);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  END_STATE(skip);
  return 0;
}
