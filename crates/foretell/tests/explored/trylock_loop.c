/* Correct: a lock that is taken by trying again and again. */
#include <pthread.h>
#include <sched.h>
#include "explored.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int value = 1;

static void *doubles(void *unused) {
  ROUNDS(2);
  while (pthread_mutex_trylock(&lock) != 0) {
    NEXT_ROUND();
    sched_yield();
  }
  value *= 2;
  pthread_mutex_unlock(&lock);
  return unused;
}

static void *adds(void *unused) {
  ROUNDS(2);
  while (pthread_mutex_trylock(&lock)) NEXT_ROUND();
  value += 3;
  pthread_mutex_unlock(&lock);
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
