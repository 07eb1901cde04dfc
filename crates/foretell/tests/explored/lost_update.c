/* Two increments in two critical sections each. */
#include <pthread.h>
#include "explored.h"

static int balance;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int get(void) {
  pthread_mutex_lock(&lock);
  int seen = balance;
  pthread_mutex_unlock(&lock);
  return seen;
}
static void set(int value) {
  pthread_mutex_lock(&lock);
  balance = value;
  pthread_mutex_unlock(&lock);
}
static void *deposit(void *unused) {
  set(get() + 1);
  return unused;
}

int main(void) {
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, deposit, NULL);
  pthread_create(&threads[1], NULL, deposit, NULL);
  pthread_create(&threads[2], NULL, deposit, NULL);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  END_STATE(balance);
  return 0;
}
