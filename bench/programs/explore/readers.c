/* Readers of one flag, each of which decides by it. N is its size. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static atomic_int flag;
static int saw[N];

static void *work(void *argument) {
  long me = (long)argument;
  if (me == N) flag = 1;
  else if (flag) saw[me] = 1;
  return NULL;
}

int main(void) {
  pthread_t threads[N + 1];
  for (int i = 0; i < N + 1; i++) pthread_create(&threads[i], NULL, work, (void *)(long)i);
  for (int i = 0; i < N + 1; i++) pthread_join(threads[i], NULL);
  long state = 0;
  for (int i = 0; i < N; i++) state = state * 2 + saw[i];
  END_STATE(state);
  return 0;
}
