/* An initialisation once, by hand and without a lock. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static atomic_int ready;
static int runs, table;

static void *user(void *unused) {
  if (!ready) {
    runs++;
    table = runs;
    ready = 1;
  }
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, user, NULL);
  pthread_create(&threads[1], NULL, user, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(runs * 10 + table);
  return 0;
}
