/* Values of a key belong to their thread. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static pthread_key_t key;
static atomic_int total;

static void *worker(void *number) {
  pthread_setspecific(key, number);
  total = total * 2 + (int)(long)pthread_getspecific(key);
  return NULL;
}

int main(void) {
  pthread_key_create(&key, NULL);
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, worker, (void *)1);
  pthread_create(&threads[1], NULL, worker, (void *)2);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(total);
  return 0;
}
