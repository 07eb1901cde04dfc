/* A thread that fails to get the second lock gives up the first. */
#include <pthread.h>
#include "explored.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int value = 1, gave_up;

static void *left(void *unused) {
  pthread_mutex_lock(&a);
  if (pthread_mutex_trylock(&b) == 0) {
    value *= 2;
    pthread_mutex_unlock(&b);
  } else {
    gave_up = 1;
  }
  pthread_mutex_unlock(&a);
  return unused;
}
static void *right(void *unused) {
  pthread_mutex_lock(&b);
  pthread_mutex_lock(&a);
  value += 3;
  pthread_mutex_unlock(&a);
  pthread_mutex_unlock(&b);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, left, NULL);
  pthread_create(&threads[1], NULL, right, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(value * 10 + gave_up);
  return 0;
}
