/* The top of a lock-free stack is popped, and pushed again, between read and swap. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

struct node {
  int value;
  struct node *next;
};
static struct node nodes[2] = {{1, &nodes[1]}, {2, NULL}};
static struct node *_Atomic top = &nodes[0];
static int result;

static struct node *pop(void) {
  struct node *old = top;
  if (old == NULL) return NULL;
  struct node *next = old->next;
  return atomic_compare_exchange_strong(&top, &old, next) ? old : NULL;
}
static void *slow(void *unused) {
  struct node *node = pop();
  result = node ? node->value : 9;
  return unused;
}
static void *quick(void *unused) {
  struct node *a = pop();
  struct node *b = pop();
  (void)b;
  if (a != NULL) {
    a->next = top;
    top = a;
  }
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, slow, NULL);
  pthread_create(&threads[1], NULL, quick, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  END_STATE(result * 10 + (top ? top->value : 0));
  return 0;
}
