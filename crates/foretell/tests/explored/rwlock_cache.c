/* Readers fill a cache that they found empty, under the write lock, and look again. */
#include <pthread.h>
#include "explored.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int cached, fills;

static void *reader(void *unused) {
  pthread_rwlock_rdlock(&lock);
  int hit = cached;
  pthread_rwlock_unlock(&lock);
  if (!hit) {
    pthread_rwlock_wrlock(&lock);
    if (!cached) {
      cached = 1;
      fills++;
    }
    pthread_rwlock_unlock(&lock);
  }
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, reader, NULL);
  pthread_create(&threads[1], NULL, reader, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(fills);
  return 0;
}
