/* After SV-COMP's queue: a queue of two under a lock, filled and emptied in order. Safe. */
#include <assert.h>
#include <pthread.h>

#define SIZE 2

int element[SIZE], head = 0, tail = 0;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

void *enqueue(void *arg) {
  pthread_mutex_lock(&m);
  element[tail] = 7;
  tail++;
  pthread_mutex_unlock(&m);
  return 0;
}

void *dequeue(void *arg) {
  pthread_mutex_lock(&m);
  if (head < tail) {
    assert(element[head] == 7);
    head++;
  }
  pthread_mutex_unlock(&m);
  return 0;
}

int main(void) {
  pthread_t e, d;
  pthread_create(&e, 0, enqueue, 0);
  pthread_create(&d, 0, dequeue, 0);
  pthread_join(e, 0);
  pthread_join(d, 0);
  return 0;
}
