/* Correct: the smoothing of barrier_split with both barriers. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

enum { WORKERS = 3 };

static int cells[WORKERS] = {3, 6, 9};
static pthread_barrier_t phase;

static int around(int me) {
  int left = cells[(me + WORKERS - 1) % WORKERS];
  int right = cells[(me + 1) % WORKERS];
  return left + right;
}

static void *worker(void *argument) {
  int me = *(int *)argument;
  pthread_barrier_wait(&phase);
  int next = around(me);
  pthread_barrier_wait(&phase);
  cells[me] = next;
  return NULL;
}

int main(void) {
  pthread_t threads[WORKERS];
  int numbers[WORKERS];
  pthread_barrier_init(&phase, NULL, WORKERS);
  for (int i = 0; i < WORKERS; i++) {
    numbers[i] = i;
    pthread_create(&threads[i], NULL, worker, &numbers[i]);
  }
  for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&phase);
  printf("%d %d %d\n", cells[0], cells[1], cells[2]);
  assert(cells[0] == 15 && cells[1] == 12 && cells[2] == 9);
  return 0;
}
