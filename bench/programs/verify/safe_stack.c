/* A stack of indices by compare-and-swap of GCC, with negative marks. Safe. */
#include <assert.h>
#include <pthread.h>

typedef struct { int value; int next; } item;
item array[2] = {{0, 1}, {0, -1}}; int head = 0, count = 2;
int pop(void) {
  while (count > 1) {
    int head1 = head;
    int next1 = __atomic_exchange_n(&array[head1].next, -1, __ATOMIC_SEQ_CST);
    if (next1 >= 0) {
      int expected = head1;
      if (__atomic_compare_exchange_n(&head, &expected, next1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        __sync_fetch_and_sub(&count, 1);
        return head1;
      }
      __atomic_exchange_n(&array[head1].next, next1, __ATOMIC_SEQ_CST);
    }
  }
  return -1;
}
void *work(void *arg) { int i = pop(); if (i >= 0) { array[i].value = 1; assert(array[i].value == 1); } return 0; }
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  
  return 0;
}
