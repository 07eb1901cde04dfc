/* Correct: two threads take two locks in opposite orders, and each gives its first back where it does not get the second. */
#include <pthread.h>
#include <sched.h>
#include "explored.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int value = 1;

static void take(pthread_mutex_t *first, pthread_mutex_t *second) {
  ROUNDS(1);
  for (;;) {
    pthread_mutex_lock(first);
    if (pthread_mutex_trylock(second) == 0) break;
    pthread_mutex_unlock(first);
    NEXT_ROUND();
    sched_yield();
  }
}

static void *doubles(void *unused) {
  take(&a, &b);
  value *= 2;
  pthread_mutex_unlock(&b);
  pthread_mutex_unlock(&a);
  return unused;
}

static void *adds(void *unused) {
  take(&b, &a);
  value += 3;
  pthread_mutex_unlock(&a);
  pthread_mutex_unlock(&b);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, doubles, NULL);
  pthread_create(&threads[1], NULL, adds, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(value);
  return 0;
}
