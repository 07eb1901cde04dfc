/* What a try-lock finds depends on the schedule alone. */
#include <pthread.h>
#include <semaphore.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t semaphore;
static int value;

static void *holder(void *unused) {
  (void)unused;
  sem_wait(&semaphore);
  pthread_mutex_lock(&lock);
  value++;
  pthread_mutex_unlock(&lock);
  sem_post(&semaphore);
  return 0;
}

int main(void) {
  pthread_t thread;
  int status = 0;
  sem_init(&semaphore, 0, 1);
  pthread_create(&thread, 0, holder, 0);
  if (pthread_mutex_trylock(&lock) == 0)
    pthread_mutex_unlock(&lock);
  else
    status += 1;
  if (sem_trywait(&semaphore) == 0)
    sem_post(&semaphore);
  else
    status += 2;
  pthread_join(thread, 0);
  return status;
}
