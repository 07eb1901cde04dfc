/* A function whose name makes it one step. Unsafe. */
#include <assert.h>
#include <pthread.h>

extern int __VERIFIER_nondet_int(void);
extern void __VERIFIER_assume(int);

int lock_word, inside, most;
void acquire(void) { __VERIFIER_assume(lock_word == 0); lock_word = 1; }
void *work(void *arg) {
  acquire();
  inside++;
  if (inside > most) most = inside;
  inside--;
  lock_word = 0;
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(most == 1);
  return 0;
}
