/* Which function is called is decided by another thread. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

typedef int operation(int);
static int twice(int value) { return value * 2; }
static int more(int value) { return value + 3; }
static operation *_Atomic chosen = twice;
static int result = 1;

static void *caller(void *unused) {
  for (int i = 0; i < 2; i++) result = chosen(result);
  return unused;
}
static void *chooser(void *unused) {
  chosen = more;
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, caller, NULL);
  pthread_create(&threads[1], NULL, chooser, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(result);
  return 0;
}
