/* Three philosophers, the last with the other hand first: no deadlock. */
#include <pthread.h>
#include "explored.h"

static pthread_mutex_t forks[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                   PTHREAD_MUTEX_INITIALIZER};
static int meals;
static pthread_mutex_t count = PTHREAD_MUTEX_INITIALIZER;

static void *philosopher(void *seat) {
  long me = (long)seat;
  long first = me == 2 ? 0 : me, second = me == 2 ? 2 : me + 1;
  pthread_mutex_lock(&forks[first]);
  pthread_mutex_lock(&forks[second]);
  pthread_mutex_lock(&count);
  meals++;
  pthread_mutex_unlock(&count);
  pthread_mutex_unlock(&forks[second]);
  pthread_mutex_unlock(&forks[first]);
  return NULL;
}

int main(void) {
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, philosopher, (void *)0);
  pthread_create(&threads[1], NULL, philosopher, (void *)1);
  pthread_create(&threads[2], NULL, philosopher, (void *)2);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  END_STATE(meals);
  return 0;
}
