/* A driver is stopped while a request is under way. Unsafe. */
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
int pendingIo = 1; _Bool stoppingFlag, stoppingEvent, stopped;
int __VERIFIER_atomic_inc(void) { if (stoppingFlag) return -1; pendingIo++; return 0; }
int __VERIFIER_atomic_dec(void) { pendingIo--; return pendingIo; }
int incrementIo(void) { if (stoppingFlag) return -1; __VERIFIER_atomic_begin(); pendingIo++; __VERIFIER_atomic_end(); return 0; }
void decrementIo(void) { if (__VERIFIER_atomic_dec() == 0) stoppingEvent = 1; }
void *add(void *arg) { if (incrementIo() == 0) { __VERIFIER_assert(!stopped); } decrementIo(); return 0; }
void *stop(void *arg) { stoppingFlag = 1; decrementIo(); assume_abort_if_not(stoppingEvent); stopped = 1; return 0; }
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, add, 0);
  pthread_create(&b, 0, stop, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  
  return 0;
}
