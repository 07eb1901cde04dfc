/* Two threads wait for each other's flag: sometimes nobody sets one. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static atomic_int a, b, turn;

static void *left(void *unused) {
  if (turn == 0) {
    while (!b) {}
  }
  a = 1;
  return unused;
}
static void *right(void *unused) {
  turn = 1;
  while (!a) {}
  b = 1;
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, left, NULL);
  pthread_create(&threads[1], NULL, right, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(a + b);
  return 0;
}
