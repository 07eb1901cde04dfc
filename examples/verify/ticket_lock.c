/* A ticket lock. Safe. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

_Atomic unsigned next, serving;
int inside;

void *worker(void *arg) {
  unsigned mine = next++;
  while (serving != mine)
    ;
  inside++;
  assert(inside == 1);
  inside--;
  serving++;
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
