/* Correct: a thread gives the first lock back where it does not get the second. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int n;

static void *in_order(void *unused) {
  pthread_mutex_lock(&a);
  pthread_mutex_lock(&b);
  n++;
  pthread_mutex_unlock(&b);
  pthread_mutex_unlock(&a);
  return unused;
}

static void *backs_off(void *unused) {
  for (;;) {
    pthread_mutex_lock(&b);
    if (pthread_mutex_trylock(&a) == 0) break;
    pthread_mutex_unlock(&b);
    sched_yield();
  }
  n++;
  pthread_mutex_unlock(&a);
  pthread_mutex_unlock(&b);
  return unused;
}

int main(void) {
  pthread_t one, two;
  pthread_create(&one, NULL, in_order, NULL);
  pthread_create(&two, NULL, backs_off, NULL);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
  assert(n == 2);
  return 0;
}
