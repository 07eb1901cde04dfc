/* A ring of two cells with semaphores. Safe. */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>


sem_t empty, full;
int cells[2], sum;
void *producer(void *arg) {
  for (int i = 0; i < 3; i++) {
    sem_wait(&empty);
    cells[i % 2] = i + 1;
    sem_post(&full);
  }
  return 0;
}
void *consumer(void *arg) {
  for (int i = 0; i < 3; i++) {
    sem_wait(&full);
    sum += cells[i % 2];

    sem_post(&empty);
  }
  return 0;
}
int main(void) {
  pthread_t a, b;
  sem_init(&empty, 0, 2);
  sem_init(&full, 0, 0);
  pthread_create(&a, 0, producer, 0);
  pthread_create(&b, 0, consumer, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(sum == 6);
  return 0;
}
