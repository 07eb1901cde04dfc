/* Three threads count with atomics. Safe. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

_Atomic int count;

void *worker(void *arg) {
  count++;
  count++;
  return 0;
}

int main(void) {
  pthread_t t[3];
  for (int i = 0; i < 3; i++)
    pthread_create(&t[i], 0, worker, 0);
  for (int i = 0; i < 3; i++)
    pthread_join(t[i], 0);
  assert(count == 6);
  return 0;
}
