/* A storm of locks around almost nothing: four threads, sixteen mutexes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, LOCKS = 16 };
static struct {
  pthread_mutex_t lock;
  long value;
  char apart[80];
} slots[LOCKS];
static int rounds = 100000;

static void *worker(void *argument) {
  unsigned seed = (unsigned)(long)argument * 7919u + 1;
  for (int i = 0; i < rounds; i++) {
    seed = seed * 1103515245u + 12345u;
    int at = (seed >> 16) % LOCKS;
    pthread_mutex_lock(&slots[at].lock);
    slots[at].value++;
    pthread_mutex_unlock(&slots[at].lock);
  }
  return NULL;
}

int main(int count, char **words) {
  pthread_t threads[THREADS];
  if (count > 1)
    rounds = atoi(words[1]);
  for (int i = 0; i < LOCKS; i++)
    pthread_mutex_init(&slots[i].lock, NULL);
  for (long i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, worker, (void *)i);
  long sum = 0;
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < LOCKS; i++)
    sum += slots[i].value;
  printf("%ld\n", sum);
  return 0;
}
