/* Locks inside locks, and a decision by what was read under the inner one. */
#include <pthread.h>
#include "explored.h"

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static int a, b;

static void *left(void *unused) {
  pthread_mutex_lock(&outer);
  pthread_mutex_lock(&inner);
  int seen = b;
  pthread_mutex_unlock(&inner);
  if (seen) a++;
  pthread_mutex_unlock(&outer);
  return unused;
}
static void *right(void *unused) {
  pthread_mutex_lock(&inner);
  b++;
  pthread_mutex_unlock(&inner);
  pthread_mutex_lock(&outer);
  a = a * 2 + 1;
  pthread_mutex_unlock(&outer);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, left, NULL);
  pthread_create(&threads[1], NULL, right, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(a * 10 + b);
  return 0;
}
