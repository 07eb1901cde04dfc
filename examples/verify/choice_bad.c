/* The environment chooses how much is taken out. Unsafe. */
#include <assert.h>
#include <pthread.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

extern char __VERIFIER_nondet_char(void);
extern void __VERIFIER_assume(int);
extern void reach_error(void);
int balance = 10;

void *clerk(void *arg) {
  char less = __VERIFIER_nondet_char();
  __VERIFIER_assume(less >= 0 && less < 6);
  pthread_mutex_lock(&m);
  balance -= less;
  pthread_mutex_unlock(&m);
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, clerk, 0);
  pthread_create(&b, 0, clerk, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  if (balance == 0)
    reach_error();
  return 0;
}
