/* A counter of each thread, and one of all. Unsafe. */
#include <assert.h>
#include <pthread.h>


int mine;
int total;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *work(void *arg) {
  mine++; mine++;
  pthread_mutex_lock(&m);
  total += mine;
  pthread_mutex_unlock(&m);
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(total == 4 && mine == 0);
  return 0;
}
