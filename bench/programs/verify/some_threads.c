/* As many threads as an input says. Safe. */
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
volatile int m = 0; int v = 0;
void __VERIFIER_atomic_acquire(void) { __VERIFIER_assume(m == 0); m = 1; }
void __VERIFIER_atomic_release(void) { __VERIFIER_assume(m == 1); m = 0; }
void *work(void *arg) { __VERIFIER_atomic_acquire(); v++; v--; __VERIFIER_assert(v == 0); __VERIFIER_atomic_release(); return 0; }
int main() {
  pthread_t t;
  for (int n = 0; n < 3 && __VERIFIER_nondet_int(); n++) pthread_create(&t, 0, work, 0);
  return 0;
}
