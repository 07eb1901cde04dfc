/* Correct: a cache behind a reader-writer lock. Who misses as a reader looks again as a writer, so
 * each square is computed once. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

enum { KEYS = 4, READERS = 2 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int squares[KEYS];
static int computed;

static int cached(int key) {
  pthread_rwlock_rdlock(&lock);
  int value = squares[key];
  pthread_rwlock_unlock(&lock);
  return value;
}

static int compute(int key) {
  pthread_rwlock_wrlock(&lock);
  if (squares[key] == 0) {
    squares[key] = key * key;
    computed++;
  }
  int value = squares[key];
  pthread_rwlock_unlock(&lock);
  return value;
}

static int square(int key) {
  int value = cached(key);
  return value != 0 ? value : compute(key);
}

static void *reader(void *sum) {
  *(int *)sum = square(2) + square(3);
  return NULL;
}

int main(void) {
  pthread_t threads[READERS];
  int sums[READERS];
  for (int i = 0; i < READERS; i++) pthread_create(&threads[i], NULL, reader, &sums[i]);
  for (int i = 0; i < READERS; i++) pthread_join(threads[i], NULL);
  printf("%d computed\n", computed);
  assert(computed == 2 && sums[0] == 13 && sums[1] == 13);
  return 0;
}
