/* Two 16-bit halves in one word, with shifts and masks. Safe. */
#include <assert.h>
#include <pthread.h>

unsigned word; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *low(void *arg) { for (int i = 0; i < 2; i++) { pthread_mutex_lock(&m); word = (word & 0xffff0000u) | ((word + 1) & 0xffffu); pthread_mutex_unlock(&m); } return 0; }
void *high(void *arg) { for (int i = 0; i < 2; i++) { pthread_mutex_lock(&m); word += 1u << 16; pthread_mutex_unlock(&m); } return 0; }
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, low, 0);
  pthread_create(&b, 0, high, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert((word & 0xffff) == 2 && word >> 16 == 2);
  return 0;
}
