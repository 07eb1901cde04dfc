/* Two phases with a barrier between them. The barrier is missing. Unsafe. */
#include <assert.h>
#include <pthread.h>

pthread_barrier_t barrier;
int part[2];

void *worker(void *arg) {
  long me = (long)arg;
  part[me] = 1;
  
  assert(part[1 - me] == 1);
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_barrier_init(&barrier, 0, 2);
  pthread_create(&a, 0, worker, (void *)0l);
  pthread_create(&b, 0, worker, (void *)1l);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
