/* The main thread leaves by pthread_exit while another one still works, and ends the process. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_key_t key;
static int destroyed;
static pthread_t first;

static void destroy(void *value) {
  (void)value;
  destroyed++;
}

static void *worker(void *unused) {
  (void)unused;
  pthread_setspecific(key, &key);
  pthread_exit(&key);
}

static void *last(void *unused) {
  (void)unused;
  void *result = 0;
  pthread_join(first, &result); /* the main thread */
  usleep(1000);
  exit(destroyed == 1 ? 5 : 6);
}

int main(void) {
  pthread_t thread;
  void *result = 0;
  first = pthread_self();
  pthread_key_create(&key, destroy);
  pthread_create(&thread, 0, worker, 0);
  pthread_join(thread, &result);
  if (result != &key)
    return 1;
  pthread_create(&thread, 0, last, 0);
  pthread_exit(0);
}
