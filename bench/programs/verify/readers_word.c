/* Readers and a writer that count in atomic functions. Safe. */
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
int w = 0, r = 0, x, y;
void __VERIFIER_atomic_take_write_lock() { __VERIFIER_assume(w == 0 && r == 0); w = 1; }
void __VERIFIER_atomic_take_read_lock() { __VERIFIER_assume(w == 0); r = r + 1; }
void __VERIFIER_atomic_release_read_lock() { r = r - 1; }
void *writer(void *arg) { __VERIFIER_atomic_take_write_lock(); x = 3; w = 0; return 0; }
void *reader(void *arg) { int l; __VERIFIER_atomic_take_read_lock(); l = x; y = l; __VERIFIER_assert(y == x); __VERIFIER_atomic_release_read_lock(); return 0; }
int main() {
  pthread_t t1, t2, t3, t4;
  pthread_create(&t1, 0, writer, 0);
  pthread_create(&t2, 0, reader, 0);
  pthread_create(&t3, 0, writer, 0);
  pthread_create(&t4, 0, reader, 0);
  pthread_join(t1, 0); pthread_join(t2, 0); pthread_join(t3, 0); pthread_join(t4, 0);
  return 0;
}
