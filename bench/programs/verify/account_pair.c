/* A transfer between two accounts by pointers. Safe. */
#include <assert.h>
#include <pthread.h>


struct account { pthread_mutex_t lock; int balance; };
struct account x = {PTHREAD_MUTEX_INITIALIZER, 10}, y = {PTHREAD_MUTEX_INITIALIZER, 10};
static void transfer(struct account *from, struct account *to, int amount) {
  pthread_mutex_lock(&from->lock);
  from->balance -= amount;
  pthread_mutex_unlock(&from->lock);
  pthread_mutex_lock(&to->lock);
  to->balance += amount;
  pthread_mutex_unlock(&to->lock);
}
void *one(void *arg) { transfer(&x, &y, 3); return 0; }
void *two(void *arg) { transfer(&y, &x, 4); return 0; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, one, 0);
  pthread_create(&b, 0, two, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(x.balance == 11 && y.balance == 9);
  return 0;
}
