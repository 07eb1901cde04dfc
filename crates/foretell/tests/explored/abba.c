/* Two locks in both orders. */
#include <pthread.h>
#include "explored.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int value = 1;

static void *left(void *unused) {
  pthread_mutex_lock(&a);
  pthread_mutex_lock(&b);
  value = value * 2;
  pthread_mutex_unlock(&b);
  pthread_mutex_unlock(&a);
  return unused;
}
static void *right(void *unused) {
  pthread_mutex_lock(&b);
  pthread_mutex_lock(&a);
  value = value + 3;
  pthread_mutex_unlock(&a);
  pthread_mutex_unlock(&b);
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
