/* The sign of an input is found by another thread. Safe. */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>

extern int __VERIFIER_nondet_int(void);
extern void __VERIFIER_assume(int);

sem_t ready;
int input, sign;
void *reader(void *arg) { input = __VERIFIER_nondet_int(); sem_post(&ready); return 0; }
void *finder(void *arg) { sem_wait(&ready); sign = input > 0 ? 1 : input < 0 ? -1 : 0; return 0; }
int main(void) {
  pthread_t a, b;
  sem_init(&ready, 0, 0);
  pthread_create(&a, 0, reader, 0);
  pthread_create(&b, 0, finder, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(input > 0 ? sign == 1 : input < 0 ? sign == -1 : sign == 0);
  return 0;
}
