/* Two threads poll a counter by a function; which of them goes on first shows. */
#include <pthread.h>
#include <sched.h>
#include "explored.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter, order;

static int count(void) {
  pthread_mutex_lock(&lock);
  int seen = counter;
  pthread_mutex_unlock(&lock);
  return seen;
}

static void *worker(void *number) {
  ROUNDS(1);
  while (count() < 1) {
    NEXT_ROUND();
    sched_yield();
  }
  pthread_mutex_lock(&lock);
  order = order * 10 + (int)(long)number;
  counter++;
  pthread_mutex_unlock(&lock);
  return NULL;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, worker, (void *)1);
  pthread_create(&threads[1], NULL, worker, (void *)2);
  pthread_mutex_lock(&lock);
  counter = 1;
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(order);
  return 0;
}
