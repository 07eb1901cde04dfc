/* A thread that does not get the lock in time counts elsewhere. Unsafe. */
#include <assert.h>
#include <pthread.h>
#include <time.h>


pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int counted;
__thread int unused;
int missed[2];
static void work_as(int me) {
  struct timespec soon = {0, 0};
  if (pthread_mutex_timedlock(&m, &soon) == 0) {
    counted++;
    pthread_mutex_unlock(&m);
  } else {
    missed[me]++;
  }
}
void *one(void *arg) { work_as(0); return 0; }
void *two(void *arg) { work_as(1); return 0; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, one, 0);
  pthread_create(&b, 0, two, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(counted == 2);
  return 0;
}
