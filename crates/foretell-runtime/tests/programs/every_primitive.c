/* Eight threads and every primitive; the result does not depend on the schedule. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 4 };

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, recursive, checking;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t semaphore;
static mtx_t mutex11;
static cnd_t condition11;
static pthread_key_t key;
static long under_plain, under_spin, under_rwlock, under_semaphore, under11, destroyed, initialised;
static int tokens, ready11;
static atomic_long atomically;

static void initialise(void) { initialised++; }
static void destroy(void *value) {
  (void)value;
  pthread_mutex_lock(&plain);
  destroyed++;
  pthread_mutex_unlock(&plain);
}

static void *worker(void *argument) {
  long id = (long)argument;
  struct timespec soon;
  pthread_setspecific(key, &key);
  pthread_once(&once, initialise);
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < ROUNDS; i++) {
    pthread_mutex_lock(&plain);
    under_plain++;
    if (id % 2) {
      while (tokens == 0)
        pthread_cond_wait(&condition, &plain);
      tokens--;
    } else {
      tokens++;
      if (i % 2)
        pthread_cond_signal(&condition);
      else
        pthread_cond_broadcast(&condition);
    }
    pthread_mutex_unlock(&plain);

    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&recursive);

    pthread_mutex_lock(&checking);
    if (pthread_mutex_lock(&checking) != EDEADLK)
      abort();
    pthread_mutex_unlock(&checking);
    if (pthread_mutex_unlock(&checking) != EPERM)
      abort();

    while (pthread_mutex_trylock(&plain) != 0)
      sched_yield();
    under_plain++;
    pthread_mutex_unlock(&plain);

    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec += 60;
    if (pthread_mutex_timedlock(&plain, &soon) != 0)
      abort();
    pthread_mutex_unlock(&plain);

    pthread_spin_lock(&spin);
    under_spin++;
    pthread_spin_unlock(&spin);

    if (i % 2) {
      pthread_rwlock_wrlock(&rwlock);
      under_rwlock++;
    } else {
      pthread_rwlock_rdlock(&rwlock);
    }
    pthread_rwlock_unlock(&rwlock);
    if (pthread_rwlock_tryrdlock(&rwlock) == 0)
      pthread_rwlock_unlock(&rwlock);

    sem_wait(&semaphore);
    under_semaphore++;
    sem_post(&semaphore);
    if (sem_trywait(&semaphore) == 0)
      sem_post(&semaphore);

    atomic_fetch_add(&atomically, 1);
    long seen = atomic_load(&atomically);
    while (!atomic_compare_exchange_weak(&atomically, &seen, seen + 1))
      ;
    char *block = malloc(64);
    memset(block, (int)id, 64);
    usleep(10);
    free(block);
    pthread_barrier_wait(&barrier);
  }
  pthread_mutex_lock(&plain);
  clock_gettime(CLOCK_REALTIME, &soon);
  static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  if (pthread_cond_timedwait(&never, &plain, &soon) != ETIMEDOUT)
    abort();
  pthread_mutex_unlock(&plain);
  if (id == 3)
    pthread_exit(argument);
  return argument;
}

static int worker11(void *argument) {
  mtx_lock(&mutex11);
  under11++;
  ready11++;
  cnd_broadcast(&condition11);
  while (ready11 < 2)
    cnd_wait(&condition11, &mutex11);
  mtx_unlock(&mutex11);
  return *(int *)argument;
}

static void *sleeper(void *argument) {
  for (;;)
    sleep(1000);
  return argument;
}

int main(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&recursive, &attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&checking, &attributes);
  pthread_barrier_init(&barrier, NULL, THREADS);
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  sem_init(&semaphore, 0, 2);
  mtx_init(&mutex11, mtx_plain);
  cnd_init(&condition11);
  pthread_key_create(&key, destroy);

  pthread_t threads[THREADS], cancelled, detached;
  for (long i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, worker, (void *)i);
  for (long i = 0; i < THREADS; i++) {
    void *result;
    pthread_join(threads[i], &result);
    if (result != (void *)i)
      return 4;
  }
  thrd_t first, second;
  int answers[2] = {41, 42}, answer;
  thrd_create(&first, worker11, &answers[0]);
  thrd_create(&second, worker11, &answers[1]);
  thrd_join(first, NULL);
  thrd_join(second, &answer);
  pthread_create(&cancelled, NULL, sleeper, NULL);
  pthread_cancel(cancelled);
  void *end;
  pthread_join(cancelled, &end);
  pthread_create(&detached, NULL, sleeper, NULL);
  pthread_detach(detached);
  printf("%ld %ld %ld %ld %ld %ld %ld %ld %d %d\n", under_plain, under_spin, under_rwlock,
         (long)atomically, under11, destroyed, initialised, under_semaphore >= 0 ? 1L : 0L, answer,
         end == PTHREAD_CANCELED);
  return 0;
}
