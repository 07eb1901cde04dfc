/* After SV-COMP's fib_bench, one round: i and j grow, but not beyond Fibonacci's number. Safe. */
#include <assert.h>
#include <pthread.h>

extern void __VERIFIER_atomic_begin(void);
extern void __VERIFIER_atomic_end(void);

int i = 1, j = 1;

#define NUM 1

void *t1(void *arg) {
  int k = 0;
  for (k = 0; k < NUM; k++) {
    __VERIFIER_atomic_begin();
    i = i + j;
    __VERIFIER_atomic_end();
  }
  return 0;
}

void *t2(void *arg) {
  int k = 0;
  for (k = 0; k < NUM; k++) {
    __VERIFIER_atomic_begin();
    j = j + i;
    __VERIFIER_atomic_end();
  }
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, t1, 0);
  pthread_create(&b, 0, t2, 0);
  int condI = i > 3;
  int condJ = j > 3;
  assert(!condI && !condJ);
  return 0;
}
