/* Two clerks hand out what the environment asks for, and look at the stock too early. Unsafe. */
#include <assert.h>
#include <pthread.h>

extern unsigned __VERIFIER_nondet_uint(void);

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
unsigned handed_out, stock;

void *clerk(void *arg) {
  unsigned wanted = __VERIFIER_nondet_uint();
  unsigned left = stock - handed_out;
  pthread_mutex_lock(&m);
  if (wanted <= left) handed_out += wanted;
  pthread_mutex_unlock(&m);
  return 0;
}

int main(void) {
  pthread_t a, b;
  stock = __VERIFIER_nondet_uint();
  pthread_create(&a, 0, clerk, 0);
  pthread_create(&b, 0, clerk, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(handed_out <= stock);
  return 0;
}
