/* A thread spins until a flag is set. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static atomic_int flag, data;
static int seen;

static void *waiter(void *unused) {
  while (!flag) {}
  seen = data;
  return unused;
}
static void *setter(void *unused) {
  data = 1;
  flag = 1;
  data = 2;
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, waiter, NULL);
  pthread_create(&threads[1], NULL, setter, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(seen);
  return 0;
}
