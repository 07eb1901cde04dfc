/* The greater of two inputs is kept. Unsafe. */
#include <assert.h>
#include <pthread.h>

extern int __VERIFIER_nondet_int(void);
extern void __VERIFIER_assume(int);

int best, first, second;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void offer(int value) {

  if (value > best) best = value;

}
void *one(void *arg) { first = __VERIFIER_nondet_int(); offer(first); return 0; }
void *two(void *arg) { second = __VERIFIER_nondet_int(); offer(second); return 0; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, one, 0);
  pthread_create(&b, 0, two, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(best >= first && best >= second);
  return 0;
}
