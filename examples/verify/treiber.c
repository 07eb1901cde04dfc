/* A stack by compare and swap. Safe. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

struct node {
  int value;
  struct node *next;
};
struct node *_Atomic top;
struct node nodes[2] = {{1, 0}, {2, 0}};

void *push(void *arg) {
  struct node *node = arg, *old = top;
  do
    node->next = old;
  while (!atomic_compare_exchange_strong(&top, &old, node));
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, push, &nodes[0]);
  pthread_create(&b, 0, push, &nodes[1]);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(top->value + top->next->value == 3);
  return 0;
}
