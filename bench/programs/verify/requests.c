/* A server until the environment stops. Safe. */
#include <assert.h>
#include <pthread.h>

extern int __VERIFIER_nondet_int(void);
extern void __VERIFIER_assume(int);

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int open_requests, stopped;
void *client(void *arg) {
  while (__VERIFIER_nondet_int()) {
    pthread_mutex_lock(&m);
    if (!stopped && open_requests < 3) open_requests++;
    pthread_mutex_unlock(&m);
  }
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, client, 0);
  while (__VERIFIER_nondet_int()) {
    pthread_mutex_lock(&m);
    if (open_requests > 0) open_requests--;
    assert(open_requests >= 0 && open_requests <= 3);
    pthread_mutex_unlock(&m);
  }
  pthread_mutex_lock(&m);
  stopped = 1;
  pthread_mutex_unlock(&m);
  pthread_join(t, 0);
  return 0;
}
