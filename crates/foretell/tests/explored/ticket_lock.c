/* Correct: a ticket lock. */
#include <pthread.h>
#include <stdatomic.h>
#include <sched.h>
#include "explored.h"

static atomic_int next, serving;
static int value;

static void *worker(void *number) {
  int mine = atomic_fetch_add(&next, 1);
  while (serving != mine) sched_yield();
  value = value * 2 + (int)(long)number;
  serving = mine + 1;
  return NULL;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, worker, (void *)1);
  pthread_create(&threads[1], NULL, worker, (void *)2);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(value);
  return 0;
}
