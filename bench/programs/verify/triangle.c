/* Two counters push one another, with the bound as a macro. Safe. */
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
#define NUM 3
#define LIMIT (2*NUM + 6)
int i = 3, j = 6;
void *t1(void *arg) { for (int k = 0; k < NUM; k++) { __VERIFIER_atomic_begin(); i = j + 1; __VERIFIER_atomic_end(); } pthread_exit(NULL); }
void *t2(void *arg) { for (int k = 0; k < NUM; k++) { __VERIFIER_atomic_begin(); j = i + 1; __VERIFIER_atomic_end(); } pthread_exit(NULL); }
int main(int argc, char **argv) {
  pthread_t id1, id2;
  pthread_create(&id1, NULL, t1, NULL);
  pthread_create(&id2, NULL, t2, NULL);
  __VERIFIER_atomic_begin(); _Bool ci = i > LIMIT; __VERIFIER_atomic_end();
  __VERIFIER_atomic_begin(); _Bool cj = j > LIMIT; __VERIFIER_atomic_end();
  if (ci || cj) { ERROR: { reach_error(); abort(); } }
  return 0;
}
