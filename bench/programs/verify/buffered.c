/* Store buffering with a write that may be delayed, as an input says. Unsafe. */
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
int __unbuffered_cnt = 0, __unbuffered_p0_EAX = 0, __unbuffered_p1_EAX = 0, x = 0, y = 0;
_Bool x$flush_delayed; int x$mem_tmp; _Bool x$w_buff0_used; int x$w_buff0; _Bool weak$$choice0, weak$$choice2;
void *P0(void *arg) {
  __VERIFIER_atomic_begin();
  x$w_buff0 = 1; x$w_buff0_used = (_Bool)1;
  __VERIFIER_atomic_end();
  __VERIFIER_atomic_begin();
  __unbuffered_p0_EAX = y;
  __VERIFIER_atomic_end();
  __VERIFIER_atomic_begin();
  x = x$w_buff0_used ? x$w_buff0 : x;
  x$w_buff0_used = (_Bool)0;
  __VERIFIER_atomic_end();
  __VERIFIER_atomic_begin();
  __unbuffered_cnt = __unbuffered_cnt + 1;
  __VERIFIER_atomic_end();
  return 0;
}
void *P1(void *arg) {
  __VERIFIER_atomic_begin();
  y = 1;
  __VERIFIER_atomic_end();
  __VERIFIER_atomic_begin();
  weak$$choice0 = __VERIFIER_nondet_bool(); weak$$choice2 = __VERIFIER_nondet_bool();
  x$flush_delayed = weak$$choice2;
  x$mem_tmp = x;
  x = !x$w_buff0_used ? x : (weak$$choice0 ? x$w_buff0 : x);
  __unbuffered_p1_EAX = x;
  x = x$flush_delayed ? x$mem_tmp : x;
  x$flush_delayed = (_Bool)0;
  __VERIFIER_atomic_end();
  __VERIFIER_atomic_begin();
  __unbuffered_cnt = __unbuffered_cnt + 1;
  __VERIFIER_atomic_end();
  return 0;
}
int main(void) {
  pthread_t t0, t1;
  pthread_create(&t0, ((void *)0), P0, ((void *)0));
  pthread_create(&t1, ((void *)0), P1, ((void *)0));
  __VERIFIER_atomic_begin();
  _Bool done = __unbuffered_cnt == 2;
  __VERIFIER_atomic_end();
  assume_abort_if_not(done);
  __VERIFIER_atomic_begin();
  _Bool bad = __unbuffered_p0_EAX == 0 && __unbuffered_p1_EAX == 0;
  __VERIFIER_atomic_end();
  __VERIFIER_assert(!bad);
  return 0;
}
