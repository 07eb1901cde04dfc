/* A state machine that two threads move on. */
#include <pthread.h>
#include "explored.h"

static int state;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *move(void *by) {
  for (int i = 0; i < 2; i++) {
    pthread_mutex_lock(&lock);
    switch (state) {
    case 0: state = (int)(long)by; break;
    case 1: state = 4; break;
    case 2: state = 1; break;
    default: state += (int)(long)by; break;
    }
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, move, (void *)1);
  pthread_create(&threads[1], NULL, move, (void *)2);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(state);
  return 0;
}
