/* Race-free, but its result depends on the order of synchronisation and on the clock. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#ifndef ROUNDS
#define ROUNDS 40
#endif
enum { THREADS = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static sem_t semaphore;
static unsigned long locked, written, counted, serial, first;
static int tokens;
static __thread unsigned long me;

static void initialise(void) { first = me; }

static void *worker(void *argument) {
  me = (unsigned long)argument;
  unsigned long failures = 0;
  pthread_once(&once, initialise);
  for (int i = 0; i < ROUNDS; i++) {
    pthread_mutex_lock(&lock);
    if (me % 2) {
      while (!tokens)
        pthread_cond_wait(&condition, &lock);
      tokens--;
    } else {
      tokens++;
      pthread_cond_signal(&condition);
    }
    locked = locked * 31 + me;
    pthread_mutex_unlock(&lock);
    if (pthread_mutex_trylock(&other) == 0)
      pthread_mutex_unlock(&other);
    else
      failures++;
    sem_wait(&semaphore);
    counted = counted * 17 + me;
    sem_post(&semaphore);
    if (i % 4) {
      pthread_rwlock_rdlock(&rwlock);
    } else {
      pthread_rwlock_wrlock(&rwlock);
      written = written * 13 + me;
    }
    pthread_rwlock_unlock(&rwlock);
  }
  if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
    serial = me;
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  pthread_mutex_lock(&lock);
  locked = locked * 7 + (unsigned long)time.tv_nsec + failures;
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* A sum of what a large read gives: from a device it is kept, a plain file is read again. */
static unsigned long sum_of(const char *path) {
  static unsigned char bytes[100000];
  int file = open(path, O_RDONLY);
  ssize_t length = read(file, bytes, sizeof bytes);
  unsigned long sum = (unsigned long)length;
  for (ssize_t i = 0; i < length; i++)
    sum = sum * 31 + bytes[i];
  close(file);
  return sum;
}

int main(int count, char **words) {
  pthread_t threads[THREADS];
  pthread_barrier_init(&barrier, NULL, THREADS);
  sem_init(&semaphore, 0, 1);
  for (unsigned long i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, worker, (void *)i);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  FILE *result = fopen(words[count - 1], "w");
  fprintf(result, "%lx %lx %lx %lu %lu %d %lx %lx\n", locked, written, counted, serial, first,
          (int)getpid(), sum_of("/dev/urandom"), sum_of("/bin/sh"));
  fclose(result);
  return 0;
}
