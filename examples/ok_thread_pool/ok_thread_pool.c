/* Correct: a pool of workers that take jobs from a list until it is closed and empty. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORKERS = 2, JOBS = 2 };

struct job {
  int input;
  struct job *next;
};

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct job *jobs;
  int closed;
  int result;
} pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0, 0};

static void submit(int input) {
  struct job *job = malloc(sizeof *job);
  job->input = input;
  pthread_mutex_lock(&pool.lock);
  job->next = pool.jobs;
  pool.jobs = job;
  pthread_cond_signal(&pool.changed);
  pthread_mutex_unlock(&pool.lock);
}

static void close_pool(void) {
  pthread_mutex_lock(&pool.lock);
  pool.closed = 1;
  pthread_cond_broadcast(&pool.changed);
  pthread_mutex_unlock(&pool.lock);
}

static struct job *take(void) {
  pthread_mutex_lock(&pool.lock);
  while (pool.jobs == NULL && !pool.closed) pthread_cond_wait(&pool.changed, &pool.lock);
  struct job *job = pool.jobs;
  if (job != NULL) pool.jobs = job->next;
  pthread_mutex_unlock(&pool.lock);
  return job;
}

static void add_result(int value) {
  pthread_mutex_lock(&pool.lock);
  pool.result += value;
  pthread_mutex_unlock(&pool.lock);
}

static void *worker(void *unused) {
  for (struct job *job = take(); job != NULL; job = take()) {
    add_result(job->input * job->input);
    free(job);
  }
  return unused;
}

int main(void) {
  pthread_t threads[WORKERS];
  for (int i = 0; i < WORKERS; i++) pthread_create(&threads[i], NULL, worker, NULL);
  for (int i = 1; i <= JOBS; i++) submit(i);
  close_pool();
  for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
  printf("result %d\n", pool.result);
  assert(pool.result == 5);
  return 0;
}
