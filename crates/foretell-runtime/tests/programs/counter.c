/* Two threads increment a counter without a lock. */
#include <pthread.h>
#include <stdio.h>

static int counter;

static void *worker(void *argument) {
  int times = *(int *)argument;
  for (int i = 0; i < times; i++)
    counter++;
  return NULL;
}

int main(void) {
  pthread_t a, b;
  int times = 3;
  pthread_create(&a, NULL, worker, &times);
  pthread_create(&b, NULL, worker, &times);
  pthread_join(a, NULL);
  pthread_join(b, NULL);
  printf("counter %d\n", counter);
  return counter == 6 ? 0 : 3;
}
