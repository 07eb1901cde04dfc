/* The read is not guarded. Unsafe. */
extern void abort(void);
extern void __assert_fail(const char *, const char *, unsigned int, const char *) __attribute__((__nothrow__, __leaf__, __noreturn__));
void reach_error(void) {
  __assert_fail("0", "f.c", 1, "reach_error");
}
#include <pthread.h>
void __VERIFIER_atomic_begin(void);
void __VERIFIER_atomic_end(void);
_Bool __VERIFIER_nondet_bool(void);
void assume_abort_if_not(int c) {
  if (!c) {
    abort();
  }
}
void __VERIFIER_assert(int e) {
  if (!e) {
    ERROR: {
      reach_error();
      abort();
    }
  }
} int __unbuffered_cnt;
_Bool main$tmp_guard0, main$tmp_guard1;
int x, y;
int x$w_buff0, x$r_buff0_thd1;
_Bool x$w_buff0_used;
int __unbuffered_p1_EAX;
void *P0(void *arg) {
  __VERIFIER_atomic_begin();
  x = 1;
  __VERIFIER_atomic_end();
  __VERIFIER_atomic_begin();
  y = 1;
  __VERIFIER_atomic_end();
  __VERIFIER_atomic_begin();
  __unbuffered_cnt = __unbuffered_cnt + 1;
  __VERIFIER_atomic_end();
  return 0;
}
void *P1(void *arg) {
  int a;
  __VERIFIER_atomic_begin();
  a = y;
  __VERIFIER_atomic_end();
  __VERIFIER_atomic_begin();
  __unbuffered_p1_EAX = a ? 1 : x;
  __VERIFIER_atomic_end();
  __VERIFIER_atomic_begin();
  x$w_buff0_used = __VERIFIER_nondet_bool();
  x$w_buff0 = x$w_buff0_used ? 2 : x$w_buff0;
  __unbuffered_cnt = __unbuffered_cnt + 1;
  __VERIFIER_atomic_end();
  return 0;
}
int main(void) {
  pthread_t t1, t2;
  pthread_create(&t1, 0, P0, 0);
  pthread_create(&t2, 0, P1, 0);
  __VERIFIER_atomic_begin();
  main$tmp_guard0 = __unbuffered_cnt == 2;
  __VERIFIER_atomic_end();
  assume_abort_if_not(main$tmp_guard0);
  __VERIFIER_atomic_begin();
  main$tmp_guard1 = __unbuffered_p1_EAX == 1;
  __VERIFIER_atomic_end();
  __VERIFIER_assert(main$tmp_guard1);
  return 0;
}
