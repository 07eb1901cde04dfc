/* A ring for one producer and one consumer, without a lock. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

enum { PLACES = 2 };
static int ring[PLACES];
static atomic_uint head, tail;
static int got;

static void *producer(void *unused) {
  for (int i = 1; i <= 2; i++) {
    unsigned at = tail;
    if (at - head == PLACES) break;
    ring[at % PLACES] = i;
    tail = at + 1;
  }
  return unused;
}
static void *consumer(void *unused) {
  for (int i = 0; i < 2; i++) {
    unsigned at = head;
    if (at == tail) continue;
    got = got * 10 + ring[at % PLACES];
    head = at + 1;
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
