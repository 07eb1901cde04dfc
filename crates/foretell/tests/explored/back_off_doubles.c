/* Correct: a lock by hand, with pauses that become longer. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "explored.h"

static atomic_int taken;
static int value = 1;

static void take(void) {
  unsigned pause = 1;
  ROUNDS(2);
  while (atomic_exchange(&taken, 1)) {
    NEXT_ROUND();
    usleep(pause);
    pause = pause < 64 ? pause * 2 : pause;
  }
}

static void *doubles(void *unused) {
  take();
  value *= 2;
  atomic_store(&taken, 0);
  return unused;
}

static void *adds(void *unused) {
  take();
  value += 3;
  atomic_store(&taken, 0);
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
