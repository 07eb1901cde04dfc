/* Peterson's lock for two. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static atomic_int interested[2], turn;
static int value = 1;

static void enter(int me) {
  interested[me] = 1;
  turn = 1 - me;
  while (interested[1 - me] && turn == 1 - me) {}
}
static void *left(void *unused) {
  enter(0);
  value = value * 2;
  interested[0] = 0;
  return unused;
}
static void *right(void *unused) {
  enter(1);
  value = value + 3;
  interested[1] = 0;
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, left, NULL);
  pthread_create(&threads[1], NULL, right, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(value);
  return 0;
}
