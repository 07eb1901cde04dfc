/* Correct: a bounded queue with two conditions, each waited for in a loop under the lock. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

enum { CAPACITY = 2, ITEMS = 4 };

static struct {
  pthread_mutex_t lock;
  pthread_cond_t not_empty, not_full;
  int items[CAPACITY];
  int first, count;
} queue = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0};

static void put(int item) {
  pthread_mutex_lock(&queue.lock);
  while (queue.count == CAPACITY) pthread_cond_wait(&queue.not_full, &queue.lock);
  queue.items[(queue.first + queue.count) % CAPACITY] = item;
  queue.count++;
  pthread_cond_signal(&queue.not_empty);
  pthread_mutex_unlock(&queue.lock);
}

static int get(void) {
  pthread_mutex_lock(&queue.lock);
  while (queue.count == 0) pthread_cond_wait(&queue.not_empty, &queue.lock);
  int item = queue.items[queue.first];
  queue.first = (queue.first + 1) % CAPACITY;
  queue.count--;
  pthread_cond_signal(&queue.not_full);
  pthread_mutex_unlock(&queue.lock);
  return item;
}

static void *producer(void *unused) {
  for (int item = 1; item <= ITEMS; item++) put(item);
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, producer, NULL);
  int sum = 0;
  for (int i = 0; i < ITEMS; i++) sum += get();
  pthread_join(thread, NULL);
  printf("sum %d\n", sum);
  assert(sum == ITEMS * (ITEMS + 1) / 2);
  return 0;
}
