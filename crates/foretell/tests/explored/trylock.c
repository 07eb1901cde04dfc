/* Two threads try; who fails does something else. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int done, skipped;

static void *worker(void *unused) {
  if (pthread_mutex_trylock(&lock) == 0) {
    done++;
    pthread_mutex_unlock(&lock);
  } else {
    skipped++;
  }
  return unused;
}

int main(void) {
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, worker, NULL);
  pthread_create(&threads[1], NULL, worker, NULL);
  pthread_create(&threads[2], NULL, worker, NULL);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  END_STATE(done * 10 + skipped);
  return 0;
}
