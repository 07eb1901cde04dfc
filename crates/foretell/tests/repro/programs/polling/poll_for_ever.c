/* A poller waits for a flag that is not set where it came too late: then it polls for ever. */
#include <pthread.h>
#include <sched.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int wanted, ready;

static void *polls(void *unused) {
  pthread_mutex_lock(&lock);
  wanted = 1;
  pthread_mutex_unlock(&lock);
  for (;;) {
    pthread_mutex_lock(&lock);
    if (ready) break;
    pthread_mutex_unlock(&lock);
    sched_yield();
  }
  pthread_mutex_unlock(&lock);
  return unused;
}

static void *sets(void *unused) {
  pthread_mutex_lock(&lock);
  if (wanted) ready = 1;
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, polls, NULL);
  pthread_create(&threads[1], NULL, sets, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  return 0;
}
