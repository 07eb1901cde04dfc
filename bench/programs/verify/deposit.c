/* Each thread deposits an amount that the environment chooses. Safe. */
#include <assert.h>
#include <pthread.h>

extern int __VERIFIER_nondet_int(void);
extern void __VERIFIER_assume(int);

int balance, deposits;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *deposit(void *arg) {
  int amount = __VERIFIER_nondet_int();
  __VERIFIER_assume(amount > 0 && amount <= 1000);
  pthread_mutex_lock(&m);
  balance += amount;
  deposits++;
  pthread_mutex_unlock(&m);
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, deposit, 0);
  pthread_create(&b, 0, deposit, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(balance >= deposits && balance <= 2000);
  return 0;
}
