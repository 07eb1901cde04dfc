/* The mean of two measurements, as a double. Safe. */
#include <assert.h>
#include <pthread.h>


double a_value = 1.5, b_value = 2.5, mean;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *work(void *arg) { pthread_mutex_lock(&m); mean = (a_value + b_value) / 2; pthread_mutex_unlock(&m); return 0; }
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, work, 0);
  pthread_join(t, 0);
  assert(mean > 1.9 && mean < 2.1);
  return 0;
}
