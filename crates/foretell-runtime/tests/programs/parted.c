/* Whether the worker finds the flag set decides which way it goes. */
#include <pthread.h>

static volatile int flag, chosen;

static void *worker(void *unused) {
  (void)unused;
  int sum = 0;
  for (int i = 0; i < 10; i++)
    sum += i;
  if (flag) /* the branch that differs */
    chosen = sum;
  else
    chosen = -sum;
  return 0;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, worker, 0);
  flag = 1;
  pthread_join(thread, 0);
  return 0;
}
