/* Threads count up from their left neighbour; one looks for the last zero. N is its size. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static atomic_int array[N + 1];
static int found;

static void *work(void *argument) {
  long me = (long)argument;
  if (me > 0) {
    array[me] = array[me - 1] + 1;
    return NULL;
  }
  int i = N;
  while (array[i] != 0) i--;
  found = i;
  return NULL;
}

int main(void) {
  pthread_t threads[N + 1];
  for (int i = 0; i < N + 1; i++) pthread_create(&threads[i], NULL, work, (void *)(long)i);
  for (int i = 0; i < N + 1; i++) pthread_join(threads[i], NULL);
  END_STATE(found);
  return 0;
}
