/* Two threads decide by what they read to wait for the other. */
#include <pthread.h>
#include <stdatomic.h>
#include <semaphore.h>
#include "explored.h"

static atomic_int x, y;
static sem_t a, b;

static void *left(void *unused) {
  x = 1;
  if (y == 0) sem_wait(&a);
  sem_post(&b);
  return unused;
}
static void *right(void *unused) {
  int seen = x;
  y = 1;
  if (seen == 0) sem_wait(&b);
  sem_post(&a);
  return unused;
}

int main(void) {
  sem_init(&a, 0, 0);
  sem_init(&b, 0, 0);
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, left, NULL);
  pthread_create(&threads[1], NULL, right, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(x + y);
  return 0;
}
