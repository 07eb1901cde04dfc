/* Nothing but memory accesses: each thread sorts arrays of its own, then adds to a shared sum. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 20000 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;
static int rounds = 4;

static void sift(int *heap, int at, int length) {
  for (int child; (child = 2 * at + 1) < length; at = child) {
    if (child + 1 < length && heap[child + 1] > heap[child])
      child++;
    if (heap[at] >= heap[child])
      return;
    int moved = heap[at];
    heap[at] = heap[child];
    heap[child] = moved;
  }
}

static void *worker(void *argument) {
  unsigned seed = (unsigned)(long)argument;
  int *numbers = malloc(LENGTH * sizeof *numbers);
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < LENGTH; i++) {
      seed = seed * 1103515245u + 12345u;
      numbers[i] = (int)(seed >> 8);
    }
    for (int i = LENGTH / 2; i-- > 0;)
      sift(numbers, i, LENGTH);
    for (int last = LENGTH - 1; last > 0; last--) {
      int largest = numbers[0];
      numbers[0] = numbers[last];
      numbers[last] = largest;
      sift(numbers, 0, last);
    }
    pthread_mutex_lock(&lock);
    sum += numbers[LENGTH / 2];
    pthread_mutex_unlock(&lock);
  }
  free(numbers);
  return NULL;
}

int main(int count, char **words) {
  pthread_t first, second;
  if (count > 1)
    rounds = atoi(words[1]);
  pthread_create(&first, NULL, worker, (void *)1L);
  pthread_create(&second, NULL, worker, (void *)2L);
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  printf("%ld\n", sum);
  return 0;
}
