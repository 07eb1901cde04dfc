/* The indexer of Flanagan and Godefroid: N threads put messages into a hash table by compare and swap. The table has room for all of them, and few collide. */
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

enum { MESSAGES = 2, SLOTS = N * MESSAGES <= 16 ? 16 : 32 };
static atomic_int table[SLOTS];

static void *work(void *argument) {
  int me = (int)(long)argument;
  for (int m = 0; m < MESSAGES; m++) {
    int message = m * 3 + me + 1, slot = message * 7 % SLOTS;
    for (;;) {
      int free = 0;
      if (atomic_compare_exchange_strong(&table[slot], &free, message)) break;
      slot = (slot + 1) % SLOTS;
    }
  }
  return NULL;
}

int main(void) {
  pthread_t threads[N];
  for (int i = 0; i < N; i++) pthread_create(&threads[i], NULL, work, (void *)(long)i);
  for (int i = 0; i < N; i++) pthread_join(threads[i], NULL);
  int used = 0;
  for (int i = 0; i < SLOTS; i++) used += table[i] != 0;
  END_STATE(used);
  return 0;
}
