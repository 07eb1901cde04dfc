/* Inputs are summed up by a thread and compared by main. Safe. */
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
int value, copy;
void *take(void *arg) { __VERIFIER_atomic_begin(); value = __VERIFIER_nondet_int(); copy = value; __VERIFIER_atomic_end(); return 0; }
void *look(void *arg) { __VERIFIER_atomic_begin(); __VERIFIER_assert(value == copy); __VERIFIER_atomic_end(); return 0; }
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, take, 0);
  pthread_create(&b, 0, look, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  
  return 0;
}
