/* Taking a ticket is not atomic. Unsafe. */
extern void abort(void);
extern void __assert_fail(const char *, const char *, unsigned int, const char *) __attribute__((__nothrow__, __leaf__, __noreturn__));
void reach_error(void) {
  __assert_fail("0", "f.c", 1, "reach_error");
}
#include <pthread.h>
volatile unsigned next, serving;
unsigned c;
int fetch_and_increment(volatile unsigned *p) {
  unsigned o = *p;
  *p = o + 1;
  return o;
}
static void *w(void *a) {
  unsigned t = fetch_and_increment(&next);
  while (t != serving) ;
  c = 1;
  if (c != 1) reach_error();
  c = 0;
  serving++;
  return 0;
}
int main(void) {
  pthread_t t[3];
  for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, w, 0);
  return 0;
}
