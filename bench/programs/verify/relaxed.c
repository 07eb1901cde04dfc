/* A flag of relaxed order hands nothing over. Unsafe. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>


atomic_int data, flag;
void *writer(void *arg) {
  atomic_store_explicit(&data, 1, memory_order_relaxed);
  atomic_store_explicit(&flag, 1, memory_order_relaxed);
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, writer, 0);
  if (atomic_load_explicit(&flag, memory_order_relaxed))
    assert(atomic_load_explicit(&data, memory_order_relaxed) == 1);
  pthread_join(t, 0);
  return 0;
}
