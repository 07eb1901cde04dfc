/* Two locks in opposite orders, the second by trying again and again while the first is held: both can go round for ever. */
#include <pthread.h>
#include <sched.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;

static void *one(void *unused) {
  pthread_mutex_lock(&a);
  while (pthread_mutex_trylock(&b) != 0) sched_yield();
  pthread_mutex_unlock(&b);
  pthread_mutex_unlock(&a);
  return unused;
}

static void *two(void *unused) {
  pthread_mutex_lock(&b);
  while (pthread_mutex_trylock(&a) != 0) sched_yield();
  pthread_mutex_unlock(&a);
  pthread_mutex_unlock(&b);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, one, NULL);
  pthread_create(&threads[1], NULL, two, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  return 0;
}
