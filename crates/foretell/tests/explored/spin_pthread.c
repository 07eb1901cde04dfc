/* The spin locks of the C library. */
#include <pthread.h>
#include "explored.h"

static pthread_spinlock_t lock;
static int value = 1;

static void *left(void *unused) {
  pthread_spin_lock(&lock);
  value *= 2;
  pthread_spin_unlock(&lock);
  return unused;
}
static void *right(void *unused) {
  if (pthread_spin_trylock(&lock) == 0) {
    value += 3;
    pthread_spin_unlock(&lock);
  }
  return unused;
}

int main(void) {
  pthread_spin_init(&lock, 0);
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, left, NULL);
  pthread_create(&threads[1], NULL, right, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(value);
  return 0;
}
