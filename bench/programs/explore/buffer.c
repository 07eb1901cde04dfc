/* A bounded buffer with N producers and N consumers. N is its size. */
#include <pthread.h>
#include <semaphore.h>
#include "explored.h"

enum { PLACES = 2 };
static int ring[PLACES], in, out, got;
static sem_t empty, full;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *argument) {
  long me = (long)argument;
  if (me < N) {
    sem_wait(&empty);
    pthread_mutex_lock(&lock);
    ring[in] = (int)me + 1;
    in = (in + 1) % PLACES;
    pthread_mutex_unlock(&lock);
    sem_post(&full);
  } else {
    sem_wait(&full);
    pthread_mutex_lock(&lock);
    got += ring[out];
    out = (out + 1) % PLACES;
    pthread_mutex_unlock(&lock);
    sem_post(&empty);
  }
  return NULL;
}

int main(void) {
  sem_init(&empty, 0, PLACES);
  sem_init(&full, 0, 0);
  pthread_t threads[2 * N];
  for (int i = 0; i < 2 * N; i++) pthread_create(&threads[i], NULL, work, (void *)(long)i);
  for (int i = 0; i < 2 * N; i++) pthread_join(threads[i], NULL);
  END_STATE(got);
  return 0;
}
