/* Thread-specific data by key. Safe. */
#include <assert.h>
#include <pthread.h>

pthread_key_t key; int done;
void *work(void *arg) {
  pthread_setspecific(key, arg);
  assert(pthread_getspecific(key) == arg);
  return 0;
}
int main(void) {
  pthread_t a, b; int x, y;
  pthread_key_create(&key, NULL);
  pthread_create(&a, 0, work, &x);
  pthread_create(&b, 0, work, &y);
  assert(pthread_getspecific(key) == NULL);
  pthread_join(a, 0); pthread_join(b, 0);
  pthread_key_delete(key);
  return 0;
}
