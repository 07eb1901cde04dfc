/* Two readers of two flags that two others write. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static atomic_int x, y;
static int one, two;

static void *write_x(void *unused) { x = 1; return unused; }
static void *write_y(void *unused) { y = 1; return unused; }
static void *reader(void *result) {
  int a = x;
  if (a) *(int *)result = 1 + y;
  return NULL;
}
static void *other(void *result) {
  int a = y;
  if (a) *(int *)result = 1 + x;
  return NULL;
}

int main(void) {
  pthread_t threads[4];
  pthread_create(&threads[0], NULL, write_x, NULL);
  pthread_create(&threads[1], NULL, write_y, NULL);
  pthread_create(&threads[2], NULL, reader, &one);
  pthread_create(&threads[3], NULL, other, &two);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  END_STATE(one * 10 + two);
  return 0;
}
