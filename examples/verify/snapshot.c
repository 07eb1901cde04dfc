/* A structure is copied and changed as a whole. Safe. */
#include <assert.h>
#include <pthread.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
struct pair {
  short low;
  long high;
} shared;

void *writer(void *arg) {
  struct pair next = {3, 3};
  pthread_mutex_lock(&m);
  shared = next;
  pthread_mutex_unlock(&m);
  return 0;
}

void *reader(void *arg) {
  pthread_mutex_lock(&m);
  struct pair seen = shared;
  pthread_mutex_unlock(&m);
  assert(seen.low == seen.high);
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, writer, 0);
  pthread_create(&b, 0, reader, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
