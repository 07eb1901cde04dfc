/* Sums of chars wrap. Unsafe. */
#include <assert.h>
#include <pthread.h>


unsigned char a_sum, b_sum;
signed char low;
void *one(void *arg) { for (int i = 0; i < 3; i++) a_sum += 100; return 0; }
void *two(void *arg) { low = 100; low += 100; b_sum = low; return 0; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, one, 0);
  pthread_create(&b, 0, two, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(a_sum == 44 && low == -56 && b_sum == -56);
  return 0;
}
