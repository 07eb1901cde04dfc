/* The same litmus test when every write is seen at once. Safe. */
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
int __unbuffered_cnt = 0, p0 = 0, p1 = 0, x = 0, y = 0;
void *P0(void *arg) { __VERIFIER_atomic_begin(); x = 1; __VERIFIER_atomic_end(); __VERIFIER_atomic_begin(); p0 = y; __VERIFIER_atomic_end(); __VERIFIER_atomic_begin(); __unbuffered_cnt++; __VERIFIER_atomic_end(); return 0; }
void *P1(void *arg) { __VERIFIER_atomic_begin(); y = 1; __VERIFIER_atomic_end(); __VERIFIER_atomic_begin(); p1 = x; __VERIFIER_atomic_end(); __VERIFIER_atomic_begin(); __unbuffered_cnt++; __VERIFIER_atomic_end(); return 0; }
int main(void) {
  pthread_t t0, t1;
  pthread_create(&t0, 0, P0, 0);
  pthread_create(&t1, 0, P1, 0);
  __VERIFIER_atomic_begin(); _Bool done = __unbuffered_cnt == 2; __VERIFIER_atomic_end();
  assume_abort_if_not(done);
  __VERIFIER_assert(p0 || p1);
  return 0;
}
