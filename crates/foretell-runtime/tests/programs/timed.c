/* Timed waits: an hour passes at once where nothing else can happen, and never where something can. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t posted, never;
static volatile int work, ready;

static struct timespec in(int seconds) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  time.tv_sec += seconds;
  return time;
}

static void *worker(void *unused) {
  (void)unused;
  for (int i = 0; i < 200; i++)
    work++;
  pthread_mutex_lock(&lock);
  ready = 1;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < 200; i++)
    work++;
  sem_post(&posted);
  pthread_mutex_lock(&held);
  sleep(1); /* holds the lock for less than others wait for it */
  pthread_mutex_unlock(&held);
  return 0;
}

int main(void) {
  pthread_t thread;
  struct timespec until = in(3600);
  int failures = 0;
  sem_init(&posted, 0, 0);
  sem_init(&never, 0, 0);
  pthread_create(&thread, 0, worker, 0);
  /* Something can happen: no wait times out. */
  pthread_mutex_lock(&lock);
  while (!ready)
    failures += pthread_cond_timedwait(&changed, &lock, &until) != 0;
  pthread_mutex_unlock(&lock);
  failures += sem_timedwait(&posted, &until) != 0;
  failures += pthread_mutex_timedlock(&held, &until) != 0;
  pthread_mutex_unlock(&held);
  pthread_join(thread, 0);
  /* Nothing can: all do, and in order. */
  time_t before = time(0);
  until = in(3600);
  pthread_mutex_lock(&lock);
  failures += pthread_cond_timedwait(&changed, &lock, &until) != ETIMEDOUT;
  until = in(3600);
  failures += sem_timedwait(&never, &until) != -1 || errno != ETIMEDOUT;
  until = in(3600);
  failures += pthread_mutex_timedlock(&lock, &until) != ETIMEDOUT;
  pthread_mutex_unlock(&lock);
  sleep(3600);
  struct timespec hour = {3600, 0};
  nanosleep(&hour, 0);
  usleep(999999);
  time_t passed = time(0) - before;
  failures += passed < 5 * 3600 || passed > 5 * 3600 + 60;
  return failures;
}
