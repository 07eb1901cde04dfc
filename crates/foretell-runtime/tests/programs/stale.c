/* A thread frees what the other one still uses, unless it does so last. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static int *shared;
static volatile int sum;

static void *worker(void *unused) {
  (void)unused;
  sum += shared[3];
  return 0;
}

int main(void) {
  pthread_t thread;
  srand((unsigned)time(0));
  shared = malloc(4 * sizeof *shared);
  for (int i = 0; i < 4; i++)
    shared[i] = rand() & 1;
  pthread_create(&thread, 0, worker, 0);
  sum += 4;
  free(shared);
  sum += 8;
  pthread_join(thread, 0);
  return sum;
}
