/* Work is chosen by a table of functions. Unsafe. */
#include <assert.h>
#include <pthread.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

int total;

static int one(int x) { return x + 1; }
static int twice(int x) { return 2 * x; }
static int (*const work[])(int) = {one, twice};

void *worker(void *arg) {
  pthread_mutex_lock(&m);
  total += work[(long)arg](1);
  pthread_mutex_unlock(&m);
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, worker, (void *)0l);
  pthread_create(&b, 0, worker, (void *)1l);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(total == 3);
  return 0;
}
