/* Thread-local variables, beside a shared one. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static _Thread_local int mine = 1;
static int result[2];
static atomic_int shared;

static void *worker(void *number) {
  mine += shared;
  shared = mine;
  mine++;
  result[(long)number] = mine;
  return NULL;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, worker, (void *)0);
  pthread_create(&threads[1], NULL, worker, (void *)1);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(result[0] * 10 + result[1]);
  return 0;
}
