/* java.util.Vector.addAll: asks the other vector for its size, then copies that many elements. Both
 * calls are synchronised, the pair is not: after a `clear` in between, stale elements are copied. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

enum { CAPACITY = 8 };

struct vector {
  pthread_mutex_t lock;
  int size;
  int elements[CAPACITY];
};

static struct vector source = {PTHREAD_MUTEX_INITIALIZER, 3, {7, 8, 9}};
static struct vector target = {PTHREAD_MUTEX_INITIALIZER, 0, {0}};

static int vector_size(struct vector *vector) {
  pthread_mutex_lock(&vector->lock);
  int size = vector->size; /* BUG: first */
  pthread_mutex_unlock(&vector->lock);
  return size;
}

static void vector_copy(struct vector *vector, int *to, int count) {
  pthread_mutex_lock(&vector->lock);
  assert(count <= vector->size); /* BUG: second, assertion */
  for (int i = 0; i < count; i++) to[i] = vector->elements[i];
  pthread_mutex_unlock(&vector->lock);
}

static void vector_clear(struct vector *vector) {
  pthread_mutex_lock(&vector->lock);
  vector->size = 0; /* BUG: remote */
  pthread_mutex_unlock(&vector->lock);
}

static void vector_add_all(struct vector *vector, struct vector *other) {
  int count = vector_size(other);
  int copy[CAPACITY];
  vector_copy(other, copy, count);
  pthread_mutex_lock(&vector->lock);
  for (int i = 0; i < count; i++) vector->elements[vector->size++] = copy[i];
  pthread_mutex_unlock(&vector->lock);
}

static void *adder(void *unused) {
  vector_add_all(&target, &source);
  return unused;
}

static void *cleaner(void *unused) {
  vector_clear(&source);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, adder, NULL);
  pthread_create(&threads[1], NULL, cleaner, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  printf("%d elements\n", target.size);
  return 0;
}
