/* Cells that the environment chooses are marked. Safe. */
#include <assert.h>
#include <pthread.h>

extern int __VERIFIER_nondet_int(void);
extern void __VERIFIER_assume(int);

int cells[4], marks;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *mark(void *arg) {
  unsigned i = (unsigned)__VERIFIER_nondet_int() % 4;
  pthread_mutex_lock(&m);
  if (!cells[i]) { cells[i] = 1; marks++; }
  pthread_mutex_unlock(&m);
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, mark, 0);
  pthread_create(&b, 0, mark, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(cells[0] + cells[1] + cells[2] + cells[3] == marks);
  return 0;
}
