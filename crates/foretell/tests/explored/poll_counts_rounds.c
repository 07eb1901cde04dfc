/* Rounds of a loop that polls are counted: none can be left out. */
#include <pthread.h>
#include <sched.h>
#include "explored.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ready, rounds;

static void *polls(void *unused) {
  int tries = 0;
  for (; tries < 2; tries++) {
    pthread_mutex_lock(&lock);
    int seen = ready;
    pthread_mutex_unlock(&lock);
    if (seen) break;
    sched_yield();
  }
  rounds = tries;
  return unused;
}

static void *sets(void *unused) {
  pthread_mutex_lock(&lock);
  ready = 1;
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, polls, NULL);
  pthread_create(&threads[1], NULL, sets, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(rounds);
  return 0;
}
