/* The lock is held around the loop and given back within it: a round lets others in. */
#include <pthread.h>
#include <sched.h>
#include "explored.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ready, seen;

static void *polls(void *unused) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < 2 && !ready; i++) {
    pthread_mutex_unlock(&lock);
    sched_yield();
    pthread_mutex_lock(&lock);
  }
  seen = ready;
  pthread_mutex_unlock(&lock);
  return unused;
}

static void *sets(void *unused) {
  pthread_mutex_lock(&lock);
  ready = ready + 1;
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, polls, NULL);
  pthread_create(&threads[1], NULL, sets, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(seen);
  return 0;
}
