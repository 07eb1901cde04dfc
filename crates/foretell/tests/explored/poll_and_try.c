/* A thread polls under a lock that another one only tries, after it has let the poller wait: the try can fail because of a
   round that goes round again. */
#include <pthread.h>
#include <sched.h>
#include "explored.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ready;
static int failed;

static void *polls(void *unused) {
  ROUNDS(2);
  for (;;) {
    pthread_mutex_lock(&lock);
    int seen = __atomic_load_n(&ready, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&lock);
    if (seen) break;
    NEXT_ROUND();
    sched_yield();
  }
  return unused;
}

static void *tries(void *unused) {
  int result = pthread_mutex_trylock(&lock);
  if (result == 0)
    pthread_mutex_unlock(&lock);
  else
    failed = 1;
  __atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, polls, NULL);
  pthread_create(&threads[1], NULL, tries, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(failed);
  return 0;
}
