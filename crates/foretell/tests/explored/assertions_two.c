/* Two assertions that fail in different orders. */
#include <pthread.h>
#include <assert.h>
#include "explored.h"

static int value;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *low(void *unused) {
  pthread_mutex_lock(&lock);
  assert(value != 2);
  value = 1;
  pthread_mutex_unlock(&lock);
  return unused;
}
static void *high(void *unused) {
  pthread_mutex_lock(&lock);
  int seen = value;
  value = 2;
  pthread_mutex_unlock(&lock);
  assert(seen != 3);
  return unused;
}
static void *third(void *unused) {
  pthread_mutex_lock(&lock);
  if (value == 0) value = 3;
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, low, NULL);
  pthread_create(&threads[1], NULL, high, NULL);
  pthread_create(&threads[2], NULL, third, NULL);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  END_STATE(value);
  return 0;
}
