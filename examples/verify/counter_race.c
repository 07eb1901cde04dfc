/* Two threads count without a lock; an update is lost. Unsafe. */
#include <assert.h>
#include <pthread.h>

int count = 0;

void *worker(void *unused) {
  for (int i = 0; i < 2; i++)
    count++;
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, worker, 0);
  pthread_create(&b, 0, worker, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(count == 4);
  return 0;
}
