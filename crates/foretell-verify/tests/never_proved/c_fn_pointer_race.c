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
int add(int a) { return a + 1; } int sub(int a) { return a - 1; } int (*op)(int) = add; int n;
void *w(void *x) { op = sub; return 0; }
void *v(void *x) { n = op(n); sched_yield(); n = op(n); return 0; }
int main(void) {
  pthread_t a, b; 
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, v, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(n == 2);
  return 0;
}
