/* Readers and a writer of a pair. Unsafe. */
#include <assert.h>
#include <pthread.h>


pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
int key, copy;
void *writer(void *arg) {
  pthread_rwlock_rdlock(&lock);
  key = 5; copy = 5;
  pthread_rwlock_unlock(&lock);
  return 0;
}
void *reader(void *arg) {
  pthread_rwlock_rdlock(&lock);
  assert(key == copy);
  pthread_rwlock_unlock(&lock);
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, writer, 0);
  pthread_create(&b, 0, reader, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);

  return 0;
}
