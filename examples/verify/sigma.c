/* After SV-COMP's sigma: threads draw an index without a lock. Unsafe: two may draw the same. */
#include <assert.h>
#include <pthread.h>

#define THREADS 2

int array[THREADS];
int array_index = 0;

void *worker(void *arg) {
  array[array_index] = 1;
  return 0;
}

int main(void) {
  pthread_t t[THREADS];
  int sum;
  for (int i = 0; i < THREADS; i++) {
    pthread_create(&t[i], 0, worker, 0);
    array_index++;
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(t[i], 0);
  sum = array[0] + array[1];
  assert(sum == THREADS);
  return 0;
}
