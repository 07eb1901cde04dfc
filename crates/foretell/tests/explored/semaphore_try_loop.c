/* Correct: tokens that are taken by trying again and again, beside somebody who tries once. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include "explored.h"

static sem_t tokens;
static int value = 1, once;

static void *doubles(void *unused) {
  ROUNDS(2);
  while (sem_trywait(&tokens) != 0) {
    NEXT_ROUND();
    sched_yield();
  }
  value *= 2;
  sem_post(&tokens);
  return unused;
}

static void *adds(void *unused) {
  ROUNDS(2);
  while (sem_trywait(&tokens) < 0) NEXT_ROUND();
  value += 3;
  sem_post(&tokens);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  sem_init(&tokens, 0, 1);
  pthread_create(&threads[0], NULL, doubles, NULL);
  pthread_create(&threads[1], NULL, adds, NULL);
  if (sem_trywait(&tokens) == 0) {
    once = 100;
    sem_post(&tokens);
  }
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(value + once);
  return 0;
}
