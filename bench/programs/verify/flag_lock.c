/* A lock of an atomic_flag. Safe. */
extern void abort(void);
extern void __assert_fail(const char *, const char *, unsigned int, const char *) __attribute__((__nothrow__, __leaf__, __noreturn__));
void reach_error(void) {
  __assert_fail("0", "f.c", 1, "reach_error");
}
#include <stdatomic.h>
#include <pthread.h>
atomic_flag f = ATOMIC_FLAG_INIT;
int n;
static void *w(void *x) {
  while (atomic_flag_test_and_set(&f)) ;
  n++;
  atomic_flag_clear(&f);
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, w, 0);
  w(0);
  pthread_join(t, 0);
  if (n != 2) reach_error();
  return 0;
}
