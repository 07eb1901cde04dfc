/* What a thread returns, and what it ends with by pthread_exit. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static atomic_int flag;

static void *worker(void *unused) {
  (void)unused;
  if (flag) pthread_exit((void *)2);
  return (void *)1;
}
static void *setter(void *unused) {
  flag = 1;
  return unused;
}

int main(void) {
  pthread_t threads[2];
  void *result;
  pthread_create(&threads[0], NULL, worker, NULL);
  pthread_create(&threads[1], NULL, setter, NULL);
  pthread_join(threads[0], &result);
  pthread_join(threads[1], NULL);
  END_STATE((long)result);
  return 0;
}
