/* A detached thread posts before main ends. Unsafe. */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>


sem_t done;
int result;
void *work(void *arg) { sem_post(&done); result = 7; return 0; }
int main(void) {
  pthread_attr_t attributes;
  pthread_t t;
  sem_init(&done, 0, 0);
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_create(&t, &attributes, work, 0);
  pthread_attr_destroy(&attributes);
  sem_wait(&done);
  assert(result == 7);
  return 0;
}
