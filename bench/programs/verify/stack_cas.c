/* A stack of cells in an array whose top is exchanged. Safe. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

extern void abort(void);
extern int __VERIFIER_nondet_int(void);
extern unsigned __VERIFIER_nondet_uint(void);
extern _Bool __VERIFIER_nondet_bool(void);
extern void __VERIFIER_assume(int);
extern void __VERIFIER_atomic_begin(void);
extern void __VERIFIER_atomic_end(void);
void reach_error(void) { assert(0); }
void __VERIFIER_assert(int holds) { if (!holds) { reach_error(); abort(); } }
void assume_abort_if_not(int holds) { if (!holds) abort(); }
#define MEMSIZE (2*8+1)
static int memory[MEMSIZE];
#define INDIR(cell,idx) memory[cell+idx]
static int next_alloc_idx = 1, top = 0;
void __VERIFIER_atomic_index_malloc(int *curr) { if (next_alloc_idx + 2 - 1 > MEMSIZE) *curr = 0; else *curr = next_alloc_idx, next_alloc_idx += 2; }
static inline void push(int d) {
  int oldTop, newTop, ret;
  __VERIFIER_atomic_index_malloc(&newTop);
  if (newTop == 0) exit(-1);
  INDIR(newTop, 0) = d;
  while (1) {
    oldTop = top;
    INDIR(newTop, 1) = oldTop;
    __VERIFIER_atomic_begin();
    if (top == oldTop) { top = newTop; ret = 1; } else ret = 0;
    __VERIFIER_atomic_end();
    if (ret) break;
  }
}
void *work(void *arg) { push(10); __VERIFIER_assert(top != 0); return 0; }
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  
  return 0;
}
