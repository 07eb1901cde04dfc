/* Correct: how long to sleep is written anew in every round. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include "explored.h"

static atomic_int ready;
static int value = 1;

static void *gives(void *unused) {
  value *= 5;
  atomic_store(&ready, 1);
  return unused;
}

static void *late(void *unused) {
  ROUNDS(2);
  while (!atomic_load(&ready)) {
    NEXT_ROUND();
    struct timespec pause = {0, 1000};
    nanosleep(&pause, NULL);
  }
  value += 2;
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, gives, NULL);
  pthread_create(&threads[1], NULL, late, NULL);
  int seen = atomic_load(&ready);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(10 * value + seen);
  return 0;
}
