/* A thread is cancelled. Safe. */
#include <assert.h>
#include <pthread.h>
#include <unistd.h>


int step;
void *work(void *arg) { step = 1; pause(); step = 2; return 0; }
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, work, 0);
  pthread_cancel(t);
  pthread_join(t, 0);
  assert(step != 2);
  return 0;
}
