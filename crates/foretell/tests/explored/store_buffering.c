/* Each thread writes one flag and reads the other. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static atomic_int x, y;
static int seen_x, seen_y;

static void *left(void *unused) {
  x = 1;
  seen_y = y;
  return unused;
}
static void *right(void *unused) {
  y = 1;
  seen_x = x;
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, left, NULL);
  pthread_create(&threads[1], NULL, right, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(seen_x * 2 + seen_y);
  return 0;
}
