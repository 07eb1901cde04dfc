/* After SV-COMP's indexer, small: two threads fill a table, each cell by compare and swap. Safe. */
#include <assert.h>
#include <pthread.h>

#define SIZE 4

extern void __VERIFIER_atomic_begin(void);
extern void __VERIFIER_atomic_end(void);

int table[SIZE];

static int cas(int h, int value) {
  int won = 0;
  __VERIFIER_atomic_begin();
  if (table[h] == 0) {
    table[h] = value;
    won = 1;
  }
  __VERIFIER_atomic_end();
  return won;
}

void *worker(void *arg) {
  int id = *(int *)arg;
  int h = id;
  int won = cas(h, id + 1);
  if (won == 0) {
    h = h + 2;
    won = cas(h, id + 1);
  }
  assert(won == 1);
  return 0;
}

int main(void) {
  pthread_t t[2];
  int ids[2];
  for (int i = 0; i < 2; i++) {
    ids[i] = i;
    pthread_create(&t[i], 0, worker, &ids[i]);
  }
  for (int i = 0; i < 2; i++)
    pthread_join(t[i], 0);
  return 0;
}
