/* A test without a framework: its exit status says whether it passed. With an argument it adds the wrong way. */
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int value;
static int torn;

static void *add(void *unused) {
  pthread_mutex_lock(&mutex);
  int before = value;
  if (torn) {
    pthread_mutex_unlock(&mutex);
    pthread_mutex_lock(&mutex);
  }
  value = before + 1;
  pthread_mutex_unlock(&mutex);
  return unused;
}

int main(int count, char **arguments) {
  (void)arguments;
  torn = count > 1;
  pthread_t other;
  pthread_create(&other, 0, add, 0);
  add(0);
  pthread_join(other, 0);
  return value == 2 ? 0 : 1;
}
