/* An object is made once, and seen whole. Safe. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
_Atomic int made;
int object;

static int get(void) {
  if (!made) {
    pthread_mutex_lock(&m);
    if (!made) {
      object = 7;
      made = 1;
    }
    pthread_mutex_unlock(&m);
  }
  return object;
}

void *worker(void *arg) {
  assert(get() == 7);
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, worker, 0);
  pthread_create(&b, 0, worker, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
