#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <semaphore.h>
#include <sched.h>
#include <unistd.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
struct f { int n; int d[]; } *g;
void *w(void *x) { int t = g->d[1]; sched_yield(); g->d[1] = t + 1; return 0; }
int main(void) {
  pthread_t a, b; g = calloc(1, sizeof *g + 2 * sizeof(int));
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, w, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(g->d[1] == 2);
  return 0;
}
