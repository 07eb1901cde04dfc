/* A lock that may come too late. */
#include <pthread.h>
#include <time.h>
#include "explored.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int value, late;

static void *patient(void *unused) {
  pthread_mutex_lock(&lock);
  value = value * 2 + 1;
  pthread_mutex_unlock(&lock);
  return unused;
}
static void *hasty(void *unused) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1;
  if (pthread_mutex_timedlock(&lock, &until) == 0) {
    value = value * 2 + 2;
    pthread_mutex_unlock(&lock);
  } else {
    late = 1;
  }
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, patient, NULL);
  pthread_create(&threads[1], NULL, hasty, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(value * 10 + late);
  return 0;
}
