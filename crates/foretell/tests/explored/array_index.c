/* An index that another thread counts up. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static int slots[3];
static atomic_int next;

static void *put(void *value) {
  int at = next;
  next = at + 1;
  slots[at] = (int)(long)value;
  return NULL;
}

int main(void) {
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, put, (void *)1);
  pthread_create(&threads[1], NULL, put, (void *)2);
  pthread_create(&threads[2], NULL, put, (void *)3);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  END_STATE(slots[0] * 100 + slots[1] * 10 + slots[2]);
  return 0;
}
