/* A worker is cancelled where it waits for a semaphore. Safe. */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>

sem_t s; int x;
void *work(void *arg) { x = 1; sem_wait(&s); x = 2; return 0; }
int main(void) {
  pthread_t t; void *r;
  sem_init(&s, 0, 0);
  pthread_create(&t, 0, work, 0);
  pthread_cancel(t);
  pthread_join(t, &r);
  assert(x != 2);
  return 0;
}
