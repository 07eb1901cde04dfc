/* Correct: a bounded buffer with two condition variables. */
#include <pthread.h>
#include "explored.h"

enum { PLACES = 1 };
static int ring[PLACES], used, got;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;

static void *producer(void *unused) {
  for (int i = 1; i <= 2; i++) {
    pthread_mutex_lock(&lock);
    while (used == PLACES) pthread_cond_wait(&not_full, &lock);
    ring[used++] = i;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&lock);
  }
  return unused;
}
static void *consumer(void *unused) {
  for (int i = 0; i < 2; i++) {
    pthread_mutex_lock(&lock);
    while (used == 0) pthread_cond_wait(&not_empty, &lock);
    got = got * 10 + ring[--used];
    pthread_cond_signal(&not_full);
    pthread_mutex_unlock(&lock);
  }
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, producer, NULL);
  pthread_create(&threads[1], NULL, consumer, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(got);
  return 0;
}
