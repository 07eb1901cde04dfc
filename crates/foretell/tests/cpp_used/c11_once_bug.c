/* C11: a flag is looked at before the lock is taken. */
#include <assert.h>
#include <stdlib.h>
#include <threads.h>
static mtx_t lock;
static int *table;
static once_flag once = ONCE_FLAG_INIT;
static void start(void) { mtx_init(&lock, mtx_plain); }
static int get(void *p) {
  call_once(&once, start);
  if (!table) {
    mtx_lock(&lock);
    table = calloc(4, sizeof *table);
    table[0] = 1;
    mtx_unlock(&lock);
  }
  mtx_lock(&lock);
  table[0]++;
  mtx_unlock(&lock);
  return 0;
}
int main(void) {
  thrd_t a, b;
  thrd_create(&a, get, NULL);
  thrd_create(&b, get, NULL);
  thrd_join(a, NULL);
  thrd_join(b, NULL);
  assert(table[0] == 3);
}
