/* Two threads add 200 under a lock. Safe. */
#include <assert.h>
#include <pthread.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

unsigned short sum;

void *worker(void *arg) {
  pthread_mutex_lock(&m);
  sum += 200;
  pthread_mutex_unlock(&m);
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, worker, 0);
  pthread_create(&b, 0, worker, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(sum == 400);
  return 0;
}
