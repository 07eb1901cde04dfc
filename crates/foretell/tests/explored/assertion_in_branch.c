/* An assertion that fails only on a path that needs two others to come first. */
#include <pthread.h>
#include <assert.h>
#include <stdatomic.h>
#include "explored.h"

static atomic_int x, y;
static int seen;

static void *checker(void *unused) {
  if (x) {
    if (y) {
      seen = 1;
      assert(x != 2);
    }
  }
  return unused;
}
static void *left(void *unused) {
  x = 1;
  x = 2;
  return unused;
}
static void *right(void *unused) {
  y = 1;
  return unused;
}

int main(void) {
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, checker, NULL);
  pthread_create(&threads[1], NULL, left, NULL);
  pthread_create(&threads[2], NULL, right, NULL);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  END_STATE(seen);
  return 0;
}
