/* Who does not get the lock counts himself out. Safe. */
#include <assert.h>
#include <pthread.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

int count, skipped[2];

void *worker(void *arg) {
  long me = (long)arg;
  if (pthread_mutex_trylock(&m) == 0) {
    count++;
    pthread_mutex_unlock(&m);
  } else {
    skipped[me] = 1;
  }
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, worker, (void *)0l);
  pthread_create(&b, 0, worker, (void *)1l);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(count + skipped[0] + skipped[1] == 2);
  return 0;
}
