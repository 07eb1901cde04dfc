/* A lock-free stack: N push and N pop, each with a few tries. N is its size. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

struct node {
  struct node *next;
};
static struct node nodes[N];
static struct node *_Atomic top;
static atomic_int popped;

static void *work(void *argument) {
  long me = (long)argument;
  if (me < N) {
    struct node *old = top;
    do nodes[me].next = old;
    while (!atomic_compare_exchange_strong(&top, &old, &nodes[me]));
  } else {
    struct node *old = top;
    while (old != NULL && !atomic_compare_exchange_strong(&top, &old, old->next)) {}
    if (old != NULL) popped++;
  }
  return NULL;
}

int main(void) {
  pthread_t threads[2 * N];
  for (int i = 0; i < 2 * N; i++) pthread_create(&threads[i], NULL, work, (void *)(long)i);
  for (int i = 0; i < 2 * N; i++) pthread_join(threads[i], NULL);
  END_STATE(popped);
  return 0;
}
