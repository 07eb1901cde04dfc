/* Correct: a flag is polled under the lock that guards it; what was written before is seen. */
#include <pthread.h>
#include <sched.h>
#include "explored.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ready, value;

static void *sets(void *unused) {
  pthread_mutex_lock(&lock);
  value = 7;
  ready = 1;
  pthread_mutex_unlock(&lock);
  return unused;
}

static void *polls(void *unused) {
  ROUNDS(2);
  for (;;) {
    pthread_mutex_lock(&lock);
    int seen = ready;
    pthread_mutex_unlock(&lock);
    if (seen) break;
    NEXT_ROUND();
    sched_yield();
  }
  value++;
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
