/* A relaxed counter of C11 that only counts. Safe. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

atomic_int hits;
void *work(void *arg) { atomic_fetch_add_explicit(&hits, 1, memory_order_relaxed); return 0; }
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(atomic_load(&hits) == 2);
  return 0;
}
