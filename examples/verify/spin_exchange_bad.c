/* A spin lock of an atomic exchange. Tested and set in two steps. Unsafe. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

_Atomic int taken;
int inside;

static void lock(void) {
  while (taken)
    ;
  taken = 1;
}

void *worker(void *arg) {
  lock();
  inside++;
  assert(inside == 1);
  inside--;
  taken = 0;
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
