/* Correct: waits until the flag is set. */
#include <pthread.h>
#include "explored.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int flag, seen;

static void *waiter(void *unused) {
  pthread_mutex_lock(&lock);
  while (!flag) pthread_cond_wait(&changed, &lock);
  seen++;
  pthread_mutex_unlock(&lock);
  return unused;
}
static void *setter(void *unused) {
  pthread_mutex_lock(&lock);
  flag = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, waiter, NULL);
  pthread_create(&threads[1], NULL, waiter, NULL);
  pthread_create(&threads[2], NULL, setter, NULL);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  END_STATE(seen);
  return 0;
}
