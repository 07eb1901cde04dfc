/* Threads set bits of a word. Unsafe. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>


 unsigned word;
void *low(void *arg) { word |= 1u; return 0; }
void *high(void *arg) { word |= 1u << 31; return 0; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, low, 0);
  pthread_create(&b, 0, high, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(word == 0x80000001u);
  return 0;
}
