/* A handler gives the mutex back when the thread exits. Safe. */
#include <assert.h>
#include <pthread.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; int x;
void give_back(void *arg) { pthread_mutex_unlock(arg); }
void *work(void *arg) { pthread_mutex_lock(&m); pthread_cleanup_push(give_back, &m); x++; pthread_cleanup_pop(1); return 0; }
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(x == 2);
  return 0;
}
