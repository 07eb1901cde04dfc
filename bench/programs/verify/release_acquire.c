/* A value is handed over by release and acquire. Safe. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

int data; atomic_int ready;
void *give(void *arg) { data = 42; atomic_store_explicit(&ready, 1, memory_order_release); return 0; }
void *take(void *arg) { if (atomic_load_explicit(&ready, memory_order_acquire)) assert(data == 42); return 0; }
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, give, 0);
  pthread_create(&b, 0, take, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  
  return 0;
}
