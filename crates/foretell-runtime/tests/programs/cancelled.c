/* Threads that are cancelled wherever they wait, and one that does not let itself be. */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t none, started;
static int ends[2], cleaned, finished;

static void clean(void *unlocks) {
  if (!unlocks)
    pthread_mutex_lock(&lock);
  cleaned++;
  pthread_mutex_unlock(&lock);
}

static void *reads(void *unused) {
  char byte;
  pthread_cleanup_push(clean, 0);
  sem_post(&started);
  read(ends[0], &byte, 1);
  pthread_cleanup_pop(0);
  return unused;
}

static void *waits(void *unused) {
  pthread_mutex_lock(&lock);
  pthread_cleanup_push(clean, &lock);
  sem_post(&started);
  for (;;)
    pthread_cond_wait(&never, &lock);
  pthread_cleanup_pop(0);
  return unused;
}

static void *waits_for_semaphore(void *unused) {
  pthread_cleanup_push(clean, 0);
  sem_post(&started);
  sem_wait(&none);
  pthread_cleanup_pop(0);
  return unused;
}

static void *sleeps(void *unused) {
  pthread_cleanup_push(clean, 0);
  sem_post(&started);
  for (;;)
    sleep(100);
  pthread_cleanup_pop(0);
  return unused;
}

static void *runs(void *unused) {
  pthread_cleanup_push(clean, 0);
  sem_post(&started);
  for (;;)
    pthread_testcancel();
  pthread_cleanup_pop(0);
  return unused;
}

static void *insists(void *unused) {
  char byte;
  int old;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
  sem_post(&started);
  if (read(ends[0], &byte, 1) == 1)
    finished++;
  return unused;
}

int main(int count, char **words) {
  enum { THREADS = 6 };
  void *(*routines[THREADS])(void *) = {reads, waits, waits_for_semaphore, sleeps, runs, insists};
  pthread_t threads[THREADS];
  int old, wrong = 0;
  if (count > 1 && strcmp(words[1], "asynchronous") == 0)
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
  sem_init(&none, 0, 0);
  sem_init(&started, 0, 0);
  if (pipe(ends) != 0)
    return 99;
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], 0, routines[i], 0);
  for (int i = 0; i < THREADS; i++)
    sem_wait(&started);
  for (int i = 0; i < THREADS; i++)
    pthread_cancel(threads[i]);
  for (int i = 0; i < THREADS - 1; i++) {
    void *result = 0;
    pthread_join(threads[i], &result);
    wrong += result != PTHREAD_CANCELED;
  }
  wrong += write(ends[1], "x", 1) != 1;
  pthread_join(threads[THREADS - 1], 0);
  return wrong + (cleaned != THREADS - 1) + (finished != 1);
}
