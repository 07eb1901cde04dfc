/* A semaphore lets the second come after the first; the third is free. */
#include <pthread.h>
#include <semaphore.h>
#include "explored.h"

static sem_t ready;
static int value = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void change(int factor, int summand) {
  pthread_mutex_lock(&lock);
  value = value * factor + summand;
  pthread_mutex_unlock(&lock);
}
static void *first(void *unused) {
  change(2, 0);
  sem_post(&ready);
  return unused;
}
static void *second(void *unused) {
  sem_wait(&ready);
  change(1, 3);
  return unused;
}
static void *third(void *unused) {
  change(3, 1);
  return unused;
}

int main(void) {
  sem_init(&ready, 0, 0);
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, first, NULL);
  pthread_create(&threads[1], NULL, second, NULL);
  pthread_create(&threads[2], NULL, third, NULL);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  END_STATE(value);
  return 0;
}
