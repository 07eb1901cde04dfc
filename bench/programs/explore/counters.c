/* Counters under one lock. N is its size. */
#include <pthread.h>
#include "explored.h"

static int total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *add(void *unused) {
  pthread_mutex_lock(&lock);
  total++;
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t threads[N];
  for (int i = 0; i < N; i++) pthread_create(&threads[i], NULL, add, (void *)(long)i);
  for (int i = 0; i < N; i++) pthread_join(threads[i], NULL);
  END_STATE(total);
  return 0;
}
