/* A list of cells whose pointers are kept in words. Safe. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

typedef struct cell { int value; struct cell *next; } cell;
cell *head; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void push(int v) {
  cell *c = (cell *)malloc(sizeof(*c));
  if (c == NULL) exit(-1);
  c->value = v;
  pthread_mutex_lock(&m);
  c->next = head; head = c;
  pthread_mutex_unlock(&m);
}
void *work(void *arg) { push((int)(long)arg); return 0; }
int main(void) {
  pthread_t t[2];
  for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, work, (void *)(i + 1));
  for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
  int sum = 0;
  for (cell *c = head; c; ) { cell *n = c->next; sum += c->value; free(c); c = n; }
  assert(sum == 3);
  return 0;
}
