/* Dekker's flags. Safe. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

_Atomic int want[2];
int inside;

void *worker(void *arg) {
  long me = (long)arg;
  want[me] = 1;
  if (want[1 - me]) {
    want[me] = 0;
    return 0;
  }
  inside++;
  assert(inside == 1);
  inside--;
  want[me] = 0;
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, worker, (void *)0l);
  pthread_create(&b, 0, worker, (void *)1l);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
