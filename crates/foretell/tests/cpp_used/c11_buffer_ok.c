/* C11 threads: a bounded buffer. */
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <threads.h>
typedef struct { int items[2]; int count, head; mtx_t lock; cnd_t not_full, not_empty; } buffer;
static void put(buffer *b, int v) {
  mtx_lock(&b->lock);
  while (b->count == 2) cnd_wait(&b->not_full, &b->lock);
  b->items[(b->head + b->count++) % 2] = v;
  cnd_signal(&b->not_empty);
  mtx_unlock(&b->lock);
}
static int take(buffer *b) {
  mtx_lock(&b->lock);
  while (b->count == 0) cnd_wait(&b->not_empty, &b->lock);
  int v = b->items[b->head];
  b->head = (b->head + 1) % 2;
  b->count--;
  cnd_signal(&b->not_full);
  mtx_unlock(&b->lock);
  return v;
}
static int producer(void *p) { for (int i = 1; i <= 3; i++) put(p, i); return 0; }
int main(void) {
  buffer b = {0};
  mtx_init(&b.lock, mtx_plain);
  cnd_init(&b.not_full);
  cnd_init(&b.not_empty);
  thrd_t t;
  assert(thrd_create(&t, producer, &b) == thrd_success);
  int sum = 0;
  for (int i = 0; i < 3; i++) sum = 10 * sum + take(&b);
  int result;
  thrd_join(t, &result);
  assert(sum == 123 && result == 0);
  printf("%d\n", sum);
}
