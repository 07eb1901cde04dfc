/* An initialisation once, and who comes second waits for it. */
#include <pthread.h>
#include "explored.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int table, runs, seen[2];

static void fill(void) {
  runs++;
  table = 5;
}
static void *user(void *number) {
  pthread_once(&once, fill);
  seen[(long)number] = table;
  return NULL;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, user, (void *)0);
  pthread_create(&threads[1], NULL, user, (void *)1);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(runs * 100 + seen[0] * 10 + seen[1]);
  return 0;
}
