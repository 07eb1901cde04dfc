/* Two phases with a barrier between them; who is the serial thread adds. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static pthread_barrier_t barrier;
static atomic_int first, second;

static void *worker(void *unused) {
  first++;
  if (pthread_barrier_wait(&barrier) != 0) second += 10;
  second += first;
  return unused;
}

int main(void) {
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, worker, NULL);
  pthread_create(&threads[1], NULL, worker, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(second);
  return 0;
}
