/* A writer that only tries, beside a reader and a writer. */
#include <pthread.h>
#include "explored.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int value = 1;
static int seen, failed;

static void *reader(void *unused) {
  pthread_rwlock_rdlock(&lock);
  seen = value;
  pthread_rwlock_unlock(&lock);
  return unused;
}
static void *writer(void *unused) {
  if (pthread_rwlock_trywrlock(&lock) == 0) {
    value = 2;
    pthread_rwlock_unlock(&lock);
  } else {
    failed = 1;
  }
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, reader, NULL);
  pthread_create(&threads[1], NULL, writer, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(value * 100 + seen * 10 + failed);
  return 0;
}
