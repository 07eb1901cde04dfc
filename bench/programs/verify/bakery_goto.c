/* A bakery for two with goto and spinning. Safe. */
extern void abort(void);
extern void __assert_fail(const char *, const char *, unsigned int, const char *) __attribute__((__nothrow__, __leaf__, __noreturn__));
void reach_error(void) {
  __assert_fail("0", "f.c", 1, "reach_error");
}
#include <pthread.h>
int e1, e2, n1, n2, x;
static void *t1(void *a) {
  breaking: e1 = 1;
  int m = n2;
  n1 = m + 1;
  e1 = 0;
  while (e2 != 0) ;
  while (n2 != 0 && n2 < n1) ;
  x = 0;
  if (x > 0) goto bad;
  n1 = 0;
  return 0;
  bad: reach_error();
  return 0;
}
static void *t2(void *a) {
  e2 = 1;
  int m = n1;
  n2 = m + 1;
  e2 = 0;
  while (e1 != 0) ;
  while (n1 != 0 && n1 <= n2) ;
  x = 1;
  n2 = 0;
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, t1, 0);
  pthread_create(&b, 0, t2, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
