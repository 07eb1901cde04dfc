/* An array of inputs of a length that is an input is summed twice. Safe. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

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
int *A; int N, s1, s2;
static int plus(int a, int b) { assume_abort_if_not(b >= 0 || a >= -2147483647 - b); assume_abort_if_not(b <= 0 || a <= 2147483647 - b); return a + b; }
int *create_fresh_int_array(int size) {
  assume_abort_if_not(size >= 0);
  assume_abort_if_not(size <= 2);
  int *arr = (int *)malloc(sizeof(int) * (size_t)(size + 1));
  for (int i = 0; i < size; i++) arr[i] = __VERIFIER_nondet_int();
  return arr;
}
void *sum1(void *arg) { for (int i = 0; i < N; i++) s1 = plus(s1, A[i]); return 0; }
void *sum2(void *arg) { for (int i = 0; i < N; i++) s2 = plus(s2, A[i]); return 0; }
int main(void) {
  pthread_t a, b;
  N = __VERIFIER_nondet_int(); A = create_fresh_int_array(N);
  pthread_create(&a, 0, sum1, 0);
  pthread_create(&b, 0, sum2, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assume_abort_if_not(!(s1 == s2) || 1); if (s1 != s2) reach_error();
  return 0;
}
