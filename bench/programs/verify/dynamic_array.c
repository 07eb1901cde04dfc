/* Threads write parts of an array whose length is an input. Safe. */
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
volatile int len; int *data; int next;
void __VERIFIER_atomic_take(int *at) { if (next + 2 <= len) { *at = next; next += 2; } else *at = -1; }
void *work(void *arg) {
  int c;
  __VERIFIER_atomic_take(&c);
  if (c >= 0) { for (int i = c; i < c + 2; i++) data[i] = 1; for (int i = c; i < c + 2; i++) __VERIFIER_assert(data[i] == 1); }
  return 0;
}
int main() {
  len = __VERIFIER_nondet_int();
  assume_abort_if_not(len > 0 && len <= 4);
  data = malloc(sizeof(int) * len);
  pthread_t a, b;
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  return 0;
}
