/* Threads are created as often as an input of few values says, then all counts agree. Unsafe. */
#include <assert.h>
#include <pthread.h>

extern void abort(void);
extern int __VERIFIER_nondet_int(void);
extern unsigned __VERIFIER_nondet_uint(void);
extern _Bool __VERIFIER_nondet_bool(void);
extern void __VERIFIER_assume(int);
extern void __VERIFIER_atomic_begin(void);
extern void __VERIFIER_atomic_end(void);
void reach_error(void) { assert(0); }
void __VERIFIER_assert(int holds) { if (!holds) { reach_error(); abort(); } }
void assume_abort_if_not(int holds) { if (!holds) abort(); }
unsigned n; int s, t; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *work(void *arg) {
  pthread_mutex_lock(&m); s++; pthread_mutex_unlock(&m);
  __VERIFIER_assert(s > t);
  pthread_mutex_lock(&m); t++; pthread_mutex_unlock(&m);
  return 0;
}
int main() {
  n = __VERIFIER_nondet_uint();
  assume_abort_if_not(n <= 2);
  pthread_t th;
  for (unsigned i = 0; i < n; i++) pthread_create(&th, 0, work, 0);
  return 0;
}
