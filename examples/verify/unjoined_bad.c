/* main returns while a thread may still fail. Unsafe. */
#include <assert.h>
#include <pthread.h>

int done;

void *worker(void *arg) {
  assert(done == 0);
  return 0;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, 0, worker, 0);
  done = 1;
  return 0;
}
