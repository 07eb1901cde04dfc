/* A round looks at two flags in two critical sections, so that it can go on although both were never set together. */
#include <pthread.h>
#include <sched.h>
#include "explored.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int one, two, together;

static void *polls(void *unused) {
  ROUNDS(2);
  for (;;) {
    pthread_mutex_lock(&lock);
    int first = one;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    int second = two;
    pthread_mutex_unlock(&lock);
    if (first && second) break;
    NEXT_ROUND();
    sched_yield();
  }
  pthread_mutex_lock(&lock);
  together = one && two;
  pthread_mutex_unlock(&lock);
  return unused;
}

static void *sets(void *unused) {
  pthread_mutex_lock(&lock);
  one = 1;
  pthread_mutex_unlock(&lock);
  pthread_mutex_lock(&lock);
  one = 0;
  two = 1;
  pthread_mutex_unlock(&lock);
  pthread_mutex_lock(&lock);
  one = 1;
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, polls, NULL);
  pthread_create(&threads[1], NULL, sets, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(together);
  return 0;
}
