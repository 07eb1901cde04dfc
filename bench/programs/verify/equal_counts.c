/* Two threads count to an input's value in atomic sections. Safe. */
extern void abort(void);
extern void __assert_fail(const char *, const char *, unsigned int, const char *) __attribute__((__nothrow__, __leaf__, __noreturn__));
void reach_error(void) {
  __assert_fail("0", "f.c", 1, "reach_error");
}
#include <pthread.h>
int __VERIFIER_nondet_int(void);
unsigned __VERIFIER_nondet_uint(void);
void assume_abort_if_not(int c) {
  if (!c) abort();
}
void __VERIFIER_atomic_begin(void);
void __VERIFIER_atomic_end(void);
int x, y, N;
static void *a(void *p) {
  int i = 0;
  while (i < N) {
    __VERIFIER_atomic_begin();
    x++;
    __VERIFIER_atomic_end();
    i++;
  }
  return 0;
}
static void *b(void *p) {
  int i = 0;
  while (i < N) {
    __VERIFIER_atomic_begin();
    y++;
    __VERIFIER_atomic_end();
    i++;
  }
  return 0;
}
int main(void) {
  pthread_t t, u;
  N = __VERIFIER_nondet_int();
  assume_abort_if_not(N >= 0 && N < 4);
  pthread_create(&t, 0, a, 0);
  pthread_create(&u, 0, b, 0);
  pthread_join(t, 0);
  pthread_join(u, 0);
  assume_abort_if_not(!(x == y));
  reach_error();
  return 0;
}
