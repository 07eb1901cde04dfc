/* A random number decides who begins. Safe. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

int shared; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *work(void *arg) { if (rand() % 2) sched_yield(); pthread_mutex_lock(&m); shared++; pthread_mutex_unlock(&m); return 0; }
int main(void) {
  pthread_t a, b;
  srand(time(NULL));
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(shared == 2);
  return 0;
}
