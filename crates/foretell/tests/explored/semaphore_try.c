/* A semaphore that is tried. */
#include <pthread.h>
#include <stdatomic.h>
#include <semaphore.h>
#include "explored.h"

static sem_t tokens;
static atomic_int got;

static void *taker(void *bit) {
  if (sem_trywait(&tokens) == 0) got += (int)(long)bit;
  return NULL;
}
static void *giver(void *unused) {
  sem_post(&tokens);
  return unused;
}

int main(void) {
  sem_init(&tokens, 0, 0);
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, taker, (void *)1);
  pthread_create(&threads[1], NULL, taker, (void *)2);
  pthread_create(&threads[2], NULL, giver, NULL);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  END_STATE(got);
  return 0;
}
