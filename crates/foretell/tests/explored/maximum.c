/* The maximum, under a lock. */
#include <pthread.h>
#include "explored.h"

static int maximum, changes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *propose(void *value) {
  pthread_mutex_lock(&lock);
  if ((int)(long)value > maximum) {
    maximum = (int)(long)value;
    changes++;
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

int main(void) {
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, propose, (void *)1);
  pthread_create(&threads[1], NULL, propose, (void *)2);
  pthread_create(&threads[2], NULL, propose, (void *)3);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  END_STATE(maximum * 10 + changes);
  return 0;
}
