/* Who exchanges first gets the initial value. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static atomic_int slot = 5;
static int got[3];

static void *worker(void *number) {
  got[(long)number] = atomic_exchange(&slot, (int)(long)number);
  return NULL;
}

int main(void) {
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, worker, (void *)0);
  pthread_create(&threads[1], NULL, worker, (void *)1);
  pthread_create(&threads[2], NULL, worker, (void *)2);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  END_STATE(got[0] * 100 + got[1] * 10 + got[2]);
  return 0;
}
