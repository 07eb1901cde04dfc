/* Threads get their number by a pointer. Each gets its own. Safe. */
#include <assert.h>
#include <pthread.h>

int seen[2];
int number[2] = {0, 1};

void *worker(void *arg) {
  int me = *(int *)arg;
  assert(me < 2);
  seen[me]++;
  return 0;
}

int main(void) {
  pthread_t t[2];
  for (int i = 0; i < 2; i++)
    pthread_create(&t[i], 0, worker, &number[i]);
  for (int i = 0; i < 2; i++)
    pthread_join(t[i], 0);
  assert(seen[0] == 1 && seen[1] == 1);
  return 0;
}
