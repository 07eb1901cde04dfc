/* Made by `foretell verify target/scratch/s/a_nondet.c`: what the environment does in its counterexample. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WEAK __attribute__((weak))

static const unsigned long long inputs[] = {9ull, 46ull, 33ull};
unsigned foretell_inputs_taken = 0;

static unsigned long long next_input(void) {
  unsigned n = foretell_inputs_taken++;
  return n < 3 ? inputs[n] : 0;
}

WEAK int __VERIFIER_nondet_int(void) { return next_input(); }
WEAK unsigned __VERIFIER_nondet_uint(void) { return next_input(); }
WEAK _Bool __VERIFIER_nondet_bool(void) { return next_input(); }
WEAK _Bool __VERIFIER_nondet__Bool(void) { return next_input(); }
WEAK signed char __VERIFIER_nondet_char(void) { return next_input(); }
WEAK unsigned char __VERIFIER_nondet_uchar(void) { return next_input(); }
WEAK short __VERIFIER_nondet_short(void) { return next_input(); }
WEAK unsigned short __VERIFIER_nondet_ushort(void) { return next_input(); }
WEAK long __VERIFIER_nondet_long(void) { return next_input(); }
WEAK unsigned long __VERIFIER_nondet_ulong(void) { return next_input(); }

pthread_mutex_t foretell_atomic_section = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
WEAK void __VERIFIER_atomic_begin(void) { pthread_mutex_lock(&foretell_atomic_section); }
WEAK void __VERIFIER_atomic_end(void) { pthread_mutex_unlock(&foretell_atomic_section); }

WEAK void __VERIFIER_assume(int holds) {
  if (holds) return;
  fputs("foretell: an assumption does not hold in this run\n", stderr);
  _exit(77);
}
WEAK void assume_abort_if_not(int holds) { __VERIFIER_assume(holds); }
WEAK void reach_error(void) { abort(); }
WEAK void __VERIFIER_error(void) { abort(); }

/* POSIX allows a wait to end without a signal. */
int foretell_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
  (void)condition;
  pthread_mutex_unlock(mutex);
  return pthread_mutex_lock(mutex);
}
