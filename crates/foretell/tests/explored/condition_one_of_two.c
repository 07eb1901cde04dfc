/* One signal for two waiters: either may take the only item. */
#include <pthread.h>
#include "explored.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int items, got;

static void *taker(void *bit) {
  pthread_mutex_lock(&lock);
  if (items == 0) pthread_cond_wait(&changed, &lock);
  if (items > 0) {
    items--;
    got += (int)(long)bit;
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}
static void *giver(void *unused) {
  pthread_mutex_lock(&lock);
  items = 1;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
  pthread_mutex_lock(&lock);
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, taker, (void *)1);
  pthread_create(&threads[1], NULL, taker, (void *)2);
  pthread_create(&threads[2], NULL, giver, NULL);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  END_STATE(items * 10 + got);
  return 0;
}
