/* Correct: who takes the last reference away frees. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "explored.h"

struct object {
  atomic_int holders;
  int value;
};
static atomic_int freed, total;

static void *holder(void *argument) {
  struct object *object = argument;
  total += object->value;
  if (atomic_fetch_sub(&object->holders, 1) == 1) {
    free(object);
    freed++;
  }
  return NULL;
}

int main(void) {
  struct object *object = malloc(sizeof *object);
  object->value = 3;
  atomic_init(&object->holders, 3);
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, holder, object);
  pthread_create(&threads[1], NULL, holder, object);
  pthread_create(&threads[2], NULL, holder, object);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  END_STATE(freed * 100 + total);
  return 0;
}
