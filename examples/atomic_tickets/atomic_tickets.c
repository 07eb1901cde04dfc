/* C11 atomics: each step is atomic, the check and the sale together are not. */
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <threads.h>

static atomic_int tickets = 4;
static atomic_int sold;

static void sell(void) {
  if (atomic_load(&tickets) >= 2) { /* BUG: first */
    atomic_fetch_sub(&tickets, 2);  /* BUG: write */
    atomic_fetch_add(&sold, 2);
  }
}

static void sell_one(void) {
  int left = atomic_load(&tickets); /* BUG: look */
  if (left > 0) {
    atomic_store(&tickets, left - 1); /* BUG: store */
    atomic_fetch_add(&sold, 1);
  }
}

static int pairs(void *unused) {
  (void)unused;
  sell();
  return 0;
}

static int singles(void *unused) {
  (void)unused;
  sell_one();
  return 0;
}

int main(void) {
  thrd_t first, second;
  thrd_create(&first, pairs, NULL);
  thrd_create(&second, singles, NULL);
  thrd_join(first, NULL);
  thrd_join(second, NULL);
  printf("%d sold, %d left\n", atomic_load(&sold), atomic_load(&tickets));
  assert(atomic_load(&sold) + atomic_load(&tickets) == 4); /* BUG: assertion */
  return 0;
}
