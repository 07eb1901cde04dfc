/* A wait that may time out, and goes on without. */
#include <pthread.h>
#include <time.h>
#include "explored.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int flag, result;

static void *waiter(void *unused) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1;
  pthread_mutex_lock(&lock);
  if (!flag) {
    int late = pthread_cond_timedwait(&changed, &lock, &until) != 0;
    result = late ? (flag ? 3 : 2) : 1;
  }
  pthread_mutex_unlock(&lock);
  return unused;
}
static void *setter(void *unused) {
  pthread_mutex_lock(&lock);
  flag = 1;
  pthread_mutex_unlock(&lock);
  pthread_cond_signal(&changed);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, waiter, NULL);
  pthread_create(&threads[1], NULL, setter, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(result);
  return 0;
}
