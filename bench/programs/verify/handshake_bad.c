/* A value is handed over by a flag under a lock. Unsafe. */
#include <assert.h>
#include <pthread.h>

extern int __VERIFIER_nondet_int(void);
extern void __VERIFIER_assume(int);

int value, ready, seen = -1, sent;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *sender(void *arg) {
  int v = __VERIFIER_nondet_int();
  sent = v;
  pthread_mutex_lock(&m);
  ready = 1; pthread_mutex_unlock(&m); pthread_mutex_lock(&m); value = v;
  pthread_mutex_unlock(&m);
  return 0;
}
void *receiver(void *arg) {
  pthread_mutex_lock(&m);
  if (ready) seen = value;
  pthread_mutex_unlock(&m);
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, sender, 0);
  pthread_create(&b, 0, receiver, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(seen == -1 || seen == sent);
  return 0;
}
