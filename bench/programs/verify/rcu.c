/* Reads of a counter of two slots as read-copy-update has them. Safe. */
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
int idx = 0, ctr1 = 1, ctr2 = 0, progress1 = 0, progress2 = 0;
pthread_mutex_t mutex;
void __VERIFIER_atomic_use1(int i) { __VERIFIER_assume(i <= 0 && ctr1 > 0); ctr1++; }
void __VERIFIER_atomic_use2(int i) { __VERIFIER_assume(i >= 1 && ctr2 > 0); ctr2++; }
void __VERIFIER_atomic_done(int i) { if (i <= 0) ctr1--; else ctr2--; }
void __VERIFIER_atomic_flip(void) { if (idx <= 0) { ctr2++; idx = 1; ctr1--; } else { ctr1++; idx = 0; ctr2--; } }
void *reader(void *arg) {
  int i = idx;
  if (__VERIFIER_nondet_int()) __VERIFIER_atomic_use1(i); else __VERIFIER_atomic_use2(i);
  progress1 = 1; progress1 = 2;
  __VERIFIER_atomic_done(i);
  return 0;
}
void *updater(void *arg) {
  pthread_mutex_lock(&mutex);
  int before = progress1;
  __VERIFIER_atomic_flip();
  if (idx <= 0) { while (ctr2 > 0) ; } else { while (ctr1 > 0) ; }
  pthread_mutex_unlock(&mutex);
  if (before == 1) __VERIFIER_assert(progress1 == 2);
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_mutex_init(&mutex, 0);
  pthread_create(&a, 0, reader, 0);
  pthread_create(&b, 0, updater, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  
  return 0;
}
