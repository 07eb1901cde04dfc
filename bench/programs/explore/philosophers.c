/* Dining philosophers, each with the left fork first: they can starve. N is its size. */
#include <pthread.h>
#include "explored.h"

static pthread_mutex_t forks[N];
static int meals[N];

static void *philosopher(void *argument) {
  long me = (long)argument;
  pthread_mutex_lock(&forks[me]);
  pthread_mutex_lock(&forks[(me + 1) % N]);
  meals[me]++;
  pthread_mutex_unlock(&forks[(me + 1) % N]);
  pthread_mutex_unlock(&forks[me]);
  return NULL;
}

int main(void) {
  for (int i = 0; i < N; i++) pthread_mutex_init(&forks[i], NULL);
  pthread_t threads[N];
  for (int i = 0; i < N; i++) pthread_create(&threads[i], NULL, philosopher, (void *)(long)i);
  for (int i = 0; i < N; i++) pthread_join(threads[i], NULL);
  END_STATE(meals[0]);
  return 0;
}
