/* Two threads push nodes of the heap onto a list without a lock; one gets lost. Unsafe. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

struct node {
  int value;
  struct node *next;
} *head;

void *push(void *arg) {
  struct node *node = malloc(sizeof *node);
  node->value = (int)(long)arg;
  
  node->next = head;
  head = node;
  
  return 0;
}

int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, push, (void *)1l);
  pthread_create(&b, 0, push, (void *)2l);
  pthread_join(a, 0);
  pthread_join(b, 0);
  int sum = 0;
  while (head) {
    struct node *gone = head;
    sum += head->value;
    head = head->next;
    free(gone);
  }
  assert(sum == 3);
  return 0;
}
