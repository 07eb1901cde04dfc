/* Tickets by fetch-and-increment of an atomic function. Safe. */
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
volatile unsigned next_ticket = 0, now_serving = 0; int c = 0;
unsigned __VERIFIER_atomic_fetch_and_increment__next_ticket() {
  unsigned value;
  if (next_ticket == 0u - 1) { next_ticket = 0; } else { value = next_ticket; next_ticket = next_ticket + 1; }
  return value;
}
void *work(void *arg) {
  unsigned my_ticket = __VERIFIER_atomic_fetch_and_increment__next_ticket();
  while (1) { if (now_serving == my_ticket) break; }
  c++; __VERIFIER_assert(c == 1); c--;
  now_serving++;
  return 0;
}
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  
  return 0;
}
