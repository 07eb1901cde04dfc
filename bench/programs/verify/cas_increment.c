/* An increment by compare-and-swap with the result through a pointer. Safe. */
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
volatile unsigned value;
void __VERIFIER_atomic_CAS(volatile unsigned *v, unsigned e, unsigned u, unsigned *r) {
  if (*v == e) { *v = u; *r = 1; } else { *r = 0; }
}
static inline unsigned inc() {
  unsigned v, vn, ret;
  do {
    v = value;
    if (v == 0u - 1) return 0;
    vn = v + 1;
    __VERIFIER_atomic_CAS(&value, v, vn, &ret);
  } while (ret == 0);
  __VERIFIER_assert(value > v);
  return vn;
}
void *work(void *arg) { inc(); return 0; }
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  
  return 0;
}
