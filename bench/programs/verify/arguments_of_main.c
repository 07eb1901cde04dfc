/* The number of threads comes from the command line. Unsafe. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
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
static int readers = 1, writers = 1;
static int x, y;
void *set(void *arg) { x = 1; y = -1; return 0; }
void *look(void *arg) { if (!((x == 0 && y == 0) || (x == 1 && y == -1))) reach_error(); return 0; }
int main(int argc, char *argv[]) {
  if (argc != 1) {
    if (argc != 3) { fprintf(stderr, "./prog <writers> <readers>\n"); exit(-1); }
    writers = atoi(argv[1]);
    readers = atoi(argv[2]);
  }
  pthread_t w[writers], r[readers];
  for (int i = 0; i < writers; i++)
    if (0 != pthread_create(&w[i], NULL, &set, NULL)) { fprintf(stderr, "Error\n"); exit(-1); }
  for (int i = 0; i < readers; i++)
    if (0 != pthread_create(&r[i], NULL, &look, NULL)) { fprintf(stderr, "Error\n"); exit(-1); }
  for (int i = 0; i < writers; i++) pthread_join(w[i], NULL);
  for (int i = 0; i < readers; i++) pthread_join(r[i], NULL);
  return 0;
}
