/* Szymanski's algorithm for two, with spinning. Safe. */
extern void abort(void);
extern void __assert_fail(const char *, const char *, unsigned int, const char *) __attribute__((__nothrow__, __leaf__, __noreturn__));
void reach_error(void) {
  __assert_fail("0", "f.c", 1, "reach_error");
}
#include <pthread.h>
int f1, f2, x;
void *t1(void *a) {
  f1 = 1;
  while (f2 >= 3) ;
  f1 = 3;
  if (f2 == 1) {
    f1 = 2;
    while (f2 != 4) ;
  }
  f1 = 4;
  while (f2 >= 2) ;
  x = 0;
  if (x > 0) reach_error();
  while (2 <= f2 && f2 <= 3) ;
  f1 = 0;
  return 0;
}
void *t2(void *a) {
  f2 = 1;
  while (f1 >= 3) ;
  f2 = 3;
  if (f1 == 1) {
    f2 = 2;
    while (f1 != 4) ;
  }
  f2 = 4;
  while (f1 >= 2) ;
  x = 1;
  if (x < 1) reach_error();
  while (2 <= f1 && f1 <= 3) ;
  f2 = 0;
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
