/* gcc's __atomic functions, sequentially consistent. Safe. */
extern void abort(void);
extern void __assert_fail(const char *, const char *, unsigned int, const char *) __attribute__((__nothrow__, __leaf__, __noreturn__));
void reach_error(void) {
  __assert_fail("0", "f.c", 1, "reach_error");
}
#include <pthread.h>
int c;
static void *w(void *a) {
  __atomic_fetch_add(&c, 1, __ATOMIC_SEQ_CST);
  int v = __atomic_load_n(&c, __ATOMIC_SEQ_CST);
  int n = 5;
  __atomic_compare_exchange_n(&c, &v, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, w, 0);
  pthread_create(&b, 0, w, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  if (__atomic_load_n(&c, 5) != 2) reach_error();
  return 0;
}
