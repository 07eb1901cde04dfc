/* What is initialised once depends on who is first. */
#include <pthread.h>
#include "explored.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local int me;
static int first, seen[3];

static void fill(void) { first = me; }
static void *user(void *number) {
  me = (int)(long)number;
  pthread_once(&once, fill);
  seen[me] = first;
  return NULL;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, user, (void *)1);
  pthread_create(&threads[1], NULL, user, (void *)2);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(seen[1] * 10 + seen[2]);
  return 0;
}
