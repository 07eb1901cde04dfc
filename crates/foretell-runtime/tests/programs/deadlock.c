/* Two locks in opposite orders, made to meet by a semaphore pair. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static sem_t first, second;

static void *worker(void *argument) {
  pthread_mutex_lock(&b);
  sem_post(&first);
  sem_wait(&second);
  pthread_mutex_lock(&a);
  return argument;
}

int main(void) {
  pthread_t thread;
  sem_init(&first, 0, 0);
  sem_init(&second, 0, 0);
  pthread_create(&thread, NULL, worker, NULL);
  pthread_mutex_lock(&a);
  sem_post(&second);
  sem_wait(&first);
  pthread_mutex_lock(&b);
  puts("not reached");
  return 0;
}
