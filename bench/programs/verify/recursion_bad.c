/* A recursive sum in two threads. Unsafe. */
#include <assert.h>
#include <pthread.h>


int total;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int sum(int n) { return n == 0 ? 0 : n + sum(n - 1); }
void *work(void *arg) {
  int mine = sum(6);
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
  assert(total == 41);
  return 0;
}
