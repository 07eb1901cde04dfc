/* Full fences of GCC and an empty assembler line between plain accesses. Safe. */
#include <assert.h>
#include <pthread.h>

volatile int x, y, r1, r2;
void *one(void *arg) { x = 1; __sync_synchronize(); __asm__ __volatile__("" ::: "memory"); r1 = y; return 0; }
void *two(void *arg) { y = 1; __sync_synchronize(); r2 = x; return 0; }
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, one, 0);
  pthread_create(&b, 0, two, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(r1 || r2);
  return 0;
}
