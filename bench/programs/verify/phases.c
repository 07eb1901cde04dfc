/* Readers look at a phase that an input moves, for ever. Safe. */
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
int g0 = 0, g1 = 0, x = 0; _Bool lock = 0;
void __VERIFIER_atomic_acquire() { __VERIFIER_assume(lock == 0); lock = 1; }
void __VERIFIER_atomic_release() { __VERIFIER_assume(lock == 1); lock = 0; }
void *reader(void *arg) {
  while (1) {
    __VERIFIER_atomic_acquire();
    if (g0 == 0 && g1 == 1) __VERIFIER_assert(x == 1);
    __VERIFIER_atomic_release();
  }
  return 0;
}
void *mover(void *arg) {
  while (1) {
    __VERIFIER_atomic_acquire();
    if (g0 == 0 && g1 == 0) { x = 1; g1 = 1; }
    else { g1 = 0; x = 0; }
    __VERIFIER_atomic_release();
  }
  return 0;
}
int main(void) { pthread_t a; pthread_create(&a, 0, reader, 0); mover(0); return 0; }
