/* Correct: a flag is polled by a reader of a reader-writer lock. */
#include <pthread.h>
#include <sched.h>
#include "explored.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int ready, value;

static void *polls(void *unused) {
  int seen = 0;
  ROUNDS(3);
  do {
    NEXT_ROUND();
    sched_yield();
    pthread_rwlock_rdlock(&lock);
    seen = ready;
    pthread_rwlock_unlock(&lock);
  } while (!seen);
  value += 2;
  return unused;
}

static void *sets(void *unused) {
  pthread_rwlock_wrlock(&lock);
  value = 1;
  ready = 1;
  pthread_rwlock_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, polls, NULL);
  pthread_create(&threads[1], NULL, sets, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(value);
  return 0;
}
