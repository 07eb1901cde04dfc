/* Szymanski for two, with volatile flags and busy waiting. Safe. */
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
volatile int flag1, flag2; int x;
void *one(void *arg) {
  flag1 = 1;
  while (flag2 >= 3) ;
  flag1 = 3;
  if (flag2 == 1) { flag1 = 2; while (flag2 != 4) ; }
  flag1 = 4;
  while (flag2 >= 2) ;
  x = 0; int y = x; __VERIFIER_assert(y <= 0);
  while (2 <= flag2 && flag2 <= 3) ;
  flag1 = 0;
  return 0;
}
void *two(void *arg) {
  flag2 = 1;
  while (flag1 >= 3) ;
  flag2 = 3;
  if (flag1 == 1) { flag2 = 2; while (flag1 != 4) ; }
  flag2 = 4;
  while (flag1 >= 2) ;
  x = 1; int y = x; __VERIFIER_assert(y >= 1);
  while (2 <= flag1 && flag1 <= 3) ;
  flag2 = 0;
  return 0;
}
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, one, 0);
  pthread_create(&b, 0, two, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  
  return 0;
}
