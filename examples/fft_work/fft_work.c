/* The transform of ok_fft with a bug inserted into the distribution of work, as in table 4 of the
 * thesis: a thread's number is read and counted up under the lock, but not under one lock. Two
 * threads do the same share, and nobody does another one. */
#include <pthread.h>

static int look_at(int *next, pthread_mutex_t *lock) {
  pthread_mutex_lock(lock);
  int seen = *next; /* BUG: first */
  pthread_mutex_unlock(lock);
  return seen;
}

static void set(int *next, int number, pthread_mutex_t *lock) {
  pthread_mutex_lock(lock);
  *next = number; /* BUG: write */
  pthread_mutex_unlock(lock);
}

static int take_number(int *next, pthread_mutex_t *lock) {
  int mine = look_at(next, lock);
  set(next, mine + 1, lock);
  return mine;
}

#define OWN_TAKE_NUMBER
#include "../ok_fft/ok_fft.c"
