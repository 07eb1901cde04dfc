/* A stack with a slot per thread, which a thread finds by its own handle. Safe. */
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
typedef struct info { unsigned id; int op; int cell; } info;
info infos[2]; int collision; int top; pthread_t ids[2];
int who(void) { pthread_t self = pthread_self(); for (int i = 0; i < 2; i++) if (pthread_equal(ids[i], self)) return i; return -1; }
int cas(int *p, int e, int n) { __VERIFIER_atomic_begin(); int same = *p == e; if (same) *p = n; __VERIFIER_atomic_end(); return same; }
void *work(void *arg) {
  int me = (int)(long)arg;
  ids[me] = pthread_self();
  infos[me].id = me + 1; infos[me].op = me;
  int old = collision;
  while (!cas(&collision, old, me + 1)) old = collision;
  int w = who();
  __VERIFIER_assert(w == me);
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, work, (void *)0);
  pthread_create(&b, 0, work, (void *)1);
  pthread_join(a, 0); pthread_join(b, 0);
  __VERIFIER_assert(collision == 1 || collision == 2);
  return 0;
}
