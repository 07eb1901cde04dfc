/* Two threads compute the greater of two inputs. Safe. */
extern void abort(void);
extern void __assert_fail(const char *, const char *, unsigned int, const char *) __attribute__((__nothrow__, __leaf__, __noreturn__));
void reach_error(void) {
  __assert_fail("0", "f.c", 1, "reach_error");
}
#include <pthread.h>
int __VERIFIER_nondet_int(void);
int a, b, r1, r2;
static void *w(void *x) {
  r1 = a > b ? a : b;
  return 0;
}
static void *v(void *x) {
  r2 = b < a ? a : b;
  return 0;
}
int main(void) {
  pthread_t t, u;
  a = __VERIFIER_nondet_int();
  b = __VERIFIER_nondet_int();
  pthread_create(&t, 0, w, 0);
  pthread_create(&u, 0, v, 0);
  pthread_join(t, 0);
  pthread_join(u, 0);
  if (r1 != r2) reach_error();
  return 0;
}
