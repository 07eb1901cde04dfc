/* Two places for three threads; how many are inside is a race of atomics. */
#include <pthread.h>
#include <stdatomic.h>
#include <semaphore.h>
#include "explored.h"

static sem_t places;
static atomic_int inside, most;

static void *visitor(void *unused) {
  sem_wait(&places);
  int now = ++inside;
  if (now > most) most = now;
  inside--;
  sem_post(&places);
  return unused;
}

int main(void) {
  sem_init(&places, 0, 2);
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, visitor, NULL);
  pthread_create(&threads[1], NULL, visitor, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(most);
  return 0;
}
