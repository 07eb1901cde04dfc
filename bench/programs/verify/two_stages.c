/* Two values under two locks, read in two stages. Unsafe. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

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
int one, two;
pthread_mutex_t la, lb;
void *set(void *arg) {
  pthread_mutex_lock(&la); one = 1; pthread_mutex_unlock(&la);
  pthread_mutex_lock(&lb); two = one + 1; pthread_mutex_unlock(&lb);
  return 0;
}
void *look(void *arg) {
  int t1, t2;
  pthread_mutex_lock(&la);
  if (one == 0) { pthread_mutex_unlock(&la); return 0; }
  t1 = one;
  pthread_mutex_unlock(&la);
  pthread_mutex_lock(&lb); t2 = two; pthread_mutex_unlock(&lb);
  if (t2 != t1 + 1) { fprintf(stderr, "bug found!\n"); reach_error(); }
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_mutex_init(&la, NULL); pthread_mutex_init(&lb, NULL);
  pthread_create(&a, 0, set, 0);
  pthread_create(&b, 0, look, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  pthread_mutex_destroy(&la); pthread_mutex_destroy(&lb);
  return 0;
}
