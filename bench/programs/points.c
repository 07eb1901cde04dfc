/* Two threads, each with so many writes: scheduling points and nothing else. */
#include <pthread.h>
#include <stdlib.h>

static volatile int place[2];
static int count;

static void *worker(void *argument) {
  volatile int *mine = argument;
  for (int i = 0; i < count; i++)
    *mine = i;
  return 0;
}

int main(int words, char **word) {
  pthread_t threads[2];
  count = words > 1 ? atoi(word[1]) : 1000;
  for (int i = 0; i < 2; i++)
    pthread_create(&threads[i], 0, worker, (void *)&place[i]);
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], 0);
  return 0;
}
