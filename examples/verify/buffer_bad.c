/* A buffer of one place between a producer and a consumer, with a condition. It waits once only, and waking up means nothing. Unsafe. */
#include <assert.h>
#include <pthread.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t c = PTHREAD_COND_INITIALIZER;
int full, value;

void *producer(void *arg) {
  for (int i = 1; i <= 2; i++) {
    pthread_mutex_lock(&m);
    while (full)
      pthread_cond_wait(&c, &m);
    value = i;
    full = 1;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
  }
  return 0;
}

void *consumer(void *arg) {
  for (int i = 1; i <= 2; i++) {
    pthread_mutex_lock(&m);
    if (!full)
      pthread_cond_wait(&c, &m);
    assert(full && value == i);
    full = 0;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
  }
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, producer, 0);
  pthread_create(&b, 0, consumer, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
