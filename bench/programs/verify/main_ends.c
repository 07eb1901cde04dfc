/* main ends while a thread runs. Safe. */
#include <assert.h>
#include <pthread.h>


int step;
void *work(void *arg) { step = 1; step = 2; assert(step != 1); return 0; }
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, work, 0);
  return 0;
}
