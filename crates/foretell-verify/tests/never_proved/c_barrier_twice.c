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
pthread_barrier_t b1; int n;
void *w(void *x) { int t = n; pthread_barrier_wait(&b1); n = t + 1; return 0; }
int main(void) {
  pthread_t a, b; pthread_barrier_init(&b1, 0, 2);
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, w, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(n == 2);
  return 0;
}
