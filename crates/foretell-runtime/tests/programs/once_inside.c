/* Initialisations that lock, and that come to another one; the order shows in the result. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t outer = PTHREAD_ONCE_INIT, inner = PTHREAD_ONCE_INIT;
static unsigned long mixed;

static void mix(unsigned long by) {
  pthread_mutex_lock(&lock);
  mixed = mixed * 31 + by;
  pthread_mutex_unlock(&lock);
}

static void inside(void) { mix(100); }

static void outside(void) {
  mix(200);
  pthread_once(&inner, inside);
  mix(300);
}

static void *worker(void *argument) {
  mix((unsigned long)argument);
  pthread_once(&outer, outside);
  pthread_once(&inner, inside);
  mix((unsigned long)argument);
  return NULL;
}

int main(int count, char **words) {
  pthread_t threads[4];
  for (unsigned long i = 0; i < 4; i++)
    pthread_create(&threads[i], NULL, worker, (void *)(i + 1));
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], NULL);
  FILE *file = count > 1 ? fopen(words[1], "w") : stdout;
  fprintf(file, "%lu\n", mixed);
  return fclose(file);
}
