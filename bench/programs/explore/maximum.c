/* The maximum, under a lock. N is its size. */
#include <pthread.h>
#include "explored.h"

static int maximum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *propose(void *argument) {
  int value = (int)(long)argument + 1;
  pthread_mutex_lock(&lock);
  if (value > maximum) maximum = value;
  pthread_mutex_unlock(&lock);
  return NULL;
}

int main(void) {
  pthread_t threads[N];
  for (int i = 0; i < N; i++) pthread_create(&threads[i], NULL, propose, (void *)(long)i);
  for (int i = 0; i < N; i++) pthread_join(threads[i], NULL);
  END_STATE(maximum);
  return 0;
}
