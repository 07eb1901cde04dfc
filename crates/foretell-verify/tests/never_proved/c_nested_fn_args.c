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
int n; int next(void) { int t = n; sched_yield(); return n = t + 1; } int add(int a, int b) { return a + b; }
void *w(void *x) { add(next(), next()); return 0; }
int main(void) {
  pthread_t a, b; 
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, w, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(n == 4);
  return 0;
}
