/* The environment chooses how much is put in. Safe. */
#include <assert.h>
#include <pthread.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

extern _Bool __VERIFIER_nondet_bool(void);
extern void reach_error(void);
int balance = 1;

void *clerk(void *arg) {
  int more = __VERIFIER_nondet_bool() ? 2 : 1;
  pthread_mutex_lock(&m);
  balance += more;
  pthread_mutex_unlock(&m);
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, clerk, 0);
  pthread_create(&b, 0, clerk, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  if (balance < 3 || balance > 5)
    reach_error();
  return 0;
}
