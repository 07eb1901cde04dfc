/* A mutex that checks: the second lock by its owner fails, and so does the unlock by another. */
#include <pthread.h>
#include <errno.h>
#include "explored.h"

static pthread_mutex_t lock;
static int owned, foreign;

static void *owner(void *unused) {
  pthread_mutex_lock(&lock);
  owned = pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  return unused;
}
static void *other(void *unused) {
  if (pthread_mutex_trylock(&lock) == 0) {
    foreign = 1;
    pthread_mutex_unlock(&lock);
  } else {
    foreign = pthread_mutex_unlock(&lock) == EPERM ? 2 : 3;
  }
  return unused;
}

int main(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&lock, &attributes);
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, owner, NULL);
  pthread_create(&threads[1], NULL, other, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE((owned == EDEADLK) * 10 + foreign);
  return 0;
}
