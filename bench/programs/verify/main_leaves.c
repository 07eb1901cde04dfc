/* main leaves by pthread_exit, and the thread runs on. Safe. */
#include <assert.h>
#include <pthread.h>


int step;
void *work(void *arg) { while (step < 2) step++; assert(step == 2); return 0; }
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, work, 0);
  pthread_exit(0);
}
