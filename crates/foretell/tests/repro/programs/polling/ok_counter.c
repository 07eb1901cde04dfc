/* Correct: main polls, by a function, until both workers have counted. */
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int done;

static int count(void) {
  pthread_mutex_lock(&lock);
  int seen = done;
  pthread_mutex_unlock(&lock);
  return seen;
}

static void *worker(void *unused) {
  pthread_mutex_lock(&lock);
  done++;
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t one, two;
  pthread_create(&one, NULL, worker, NULL);
  pthread_create(&two, NULL, worker, NULL);
  while (count() < 2) usleep(100);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
  assert(done == 2);
  return 0;
}
