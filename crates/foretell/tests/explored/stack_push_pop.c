/* A lock-free stack of nodes that are never used again. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

struct node {
  int value;
  struct node *next;
};
static struct node nodes[2] = {{1, NULL}, {2, NULL}};
static struct node *_Atomic top;
static int popped;

static void *pusher(void *argument) {
  struct node *node = argument;
  node->next = top;
  while (!atomic_compare_exchange_strong(&top, &node->next, node)) {}
  return NULL;
}
static void *popper(void *unused) {
  struct node *old = top;
  while (old != NULL && !atomic_compare_exchange_strong(&top, &old, old->next)) {}
  if (old != NULL) popped = old->value;
  return unused;
}

int main(void) {
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, pusher, &nodes[0]);
  pthread_create(&threads[1], NULL, pusher, &nodes[1]);
  pthread_create(&threads[2], NULL, popper, NULL);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  END_STATE(popped * 10 + (top ? top->value : 0));
  return 0;
}
