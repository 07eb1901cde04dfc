/* Two clerks move money; the sum stays. Safe. */
#include <assert.h>
#include <pthread.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

int from = 5, to = 5;

void *clerk(void *arg) {
  pthread_mutex_lock(&m);
  from -= 1;
  to += 1;
  pthread_mutex_unlock(&m);
  return 0;
}

void *auditor(void *arg) {
  pthread_mutex_lock(&m);
  int sum = from + to;
  pthread_mutex_unlock(&m);
  assert(sum == 10);
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, clerk, 0);
  pthread_create(&b, 0, auditor, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
