/* Functions are chosen through a table. Unsafe. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>


atomic_int count;
int plain;
void safe_step(void) { count++; }
void plain_step(void) { int c = count; count = c + 1; }
void (*steps[2])(void) = {safe_step, plain_step};
void *work(void *arg) { steps[0](); steps[1](); return 0; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(count == 4);
  return 0;
}
