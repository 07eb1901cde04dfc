/* Two locks, taken in different orders. Deadlock. */
#include <assert.h>
#include <pthread.h>


pthread_mutex_t a_lock = PTHREAD_MUTEX_INITIALIZER, b_lock = PTHREAD_MUTEX_INITIALIZER;
int count;
void *one(void *arg) {
  pthread_mutex_lock(&a_lock);
  pthread_mutex_lock(&b_lock);
  count++;
  pthread_mutex_unlock(&b_lock);
  pthread_mutex_unlock(&a_lock);
  return 0;
}
void *two(void *arg) {
  pthread_mutex_lock(&b_lock);
  pthread_mutex_lock(&a_lock);
  count++;
  pthread_mutex_unlock(&b_lock);
  pthread_mutex_unlock(&a_lock);
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, one, 0);
  pthread_create(&b, 0, two, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(count == 2);
  return 0;
}
