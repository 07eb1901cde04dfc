/* A wait for a semaphore that may time out. */
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include "explored.h"

static sem_t tokens;
static int result;

static void *taker(void *unused) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1;
  result = sem_timedwait(&tokens, &until) == 0 ? 1 : 2;
  return unused;
}
static void *giver(void *unused) {
  sem_post(&tokens);
  return unused;
}

int main(void) {
  sem_init(&tokens, 0, 0);
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, taker, NULL);
  pthread_create(&threads[1], NULL, giver, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(result);
  return 0;
}
