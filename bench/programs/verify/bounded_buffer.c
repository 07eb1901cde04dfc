/* A buffer in a structure with a mutex and two conditions, on the heap. Safe. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

typedef struct { int buf[2]; size_t len; pthread_mutex_t mutex; pthread_cond_t can_produce, can_consume; } buffer_t;
void *producer(void *arg) {
  buffer_t *b = (buffer_t *)arg;
  for (int i = 0; i < 3; i++) {
    pthread_mutex_lock(&b->mutex);
    while (b->len == 2) pthread_cond_wait(&b->can_produce, &b->mutex);
    b->buf[b->len] = i; ++b->len;
    pthread_cond_signal(&b->can_consume);
    pthread_mutex_unlock(&b->mutex);
  }
  return NULL;
}
void *consumer(void *arg) {
  buffer_t *b = (buffer_t *)arg;
  for (int i = 0; i < 3; i++) {
    pthread_mutex_lock(&b->mutex);
    while (b->len == 0) pthread_cond_wait(&b->can_consume, &b->mutex);
    --b->len;
    assert(b->buf[b->len] >= 0);
    pthread_cond_signal(&b->can_produce);
    pthread_mutex_unlock(&b->mutex);
  }
  return NULL;
}
int main(int argc, char *argv[]) {
  buffer_t buffer = { .len = 0, .mutex = PTHREAD_MUTEX_INITIALIZER, .can_produce = PTHREAD_COND_INITIALIZER, .can_consume = PTHREAD_COND_INITIALIZER };
  pthread_t prod, cons;
  pthread_create(&prod, NULL, producer, (void *)&buffer);
  pthread_create(&cons, NULL, consumer, (void *)&buffer);
  pthread_join(prod, NULL); pthread_join(cons, NULL);
  return 0;
}
