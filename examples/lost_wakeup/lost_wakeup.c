/* Lost wake-up: the consumer looks for an item, finds none, and only then takes the lock to wait.
 * The producer's signal in between wakes nobody, and the consumer sleeps for ever. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static atomic_int items;

static void wait_for_item(void) {
  if (atomic_load(&items) == 0) { /* BUG: first */
    pthread_mutex_lock(&lock);
    pthread_cond_wait(&not_empty, &lock); /* BUG: wait */
    pthread_mutex_unlock(&lock);
  }
}

static void *producer(void *unused) {
  atomic_fetch_add(&items, 1);
  pthread_mutex_lock(&lock);
  pthread_cond_signal(&not_empty); /* BUG: signal */
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, producer, NULL);
  wait_for_item();
  printf("got %d item\n", atomic_load(&items));
  pthread_join(thread, NULL);
  return 0;
}
