/* Mutual exclusion of two threads by Peterson's algorithm, in C. Safe. */
#include <assert.h>
#include <pthread.h>

int flag1 = 0, flag2 = 0, turn = 0, x = 0;

void *thr1(void *arg) {
  flag1 = 1;
  turn = 1;
  while (flag2 == 1 && turn == 1)
    ;
  x = 0;
  assert(x <= 0);
  flag1 = 0;
  return 0;
}

void *thr2(void *arg) {
  flag2 = 1;
  turn = 0;
  while (flag1 == 1 && turn == 0)
    ;
  x = 1;
  assert(x >= 1);
  flag2 = 0;
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, thr1, 0);
  pthread_create(&b, 0, thr2, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
