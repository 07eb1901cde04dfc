/* A ring buffer in a structure, filled and emptied under a lock. Safe. */
#include <assert.h>
#include <pthread.h>

struct ring {
  pthread_mutex_t lock;
  unsigned char head, tail;
  short cells[2];
} ring = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void put(struct ring *r, short value) {
  pthread_mutex_lock(&r->lock);
  r->cells[r->tail % 2] = value;
  r->tail++;
  pthread_mutex_unlock(&r->lock);
}

void *producer(void *arg) {
  put(arg, 10);
  put(arg, 20);
  return 0;
}

void *consumer(void *arg) {
  struct ring *r = arg;
  for (short expected = 10; expected <= 20;) {
    pthread_mutex_lock(&r->lock);
    if (r->head != r->tail) {
      assert(r->cells[r->head % 2] == expected);
      r->head++;
      expected += 10;
    }
    pthread_mutex_unlock(&r->lock);
  }
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, producer, &ring);
  pthread_create(&b, 0, consumer, &ring);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
