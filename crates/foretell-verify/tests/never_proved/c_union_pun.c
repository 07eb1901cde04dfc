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
union { int i; short h[2]; } u;
void *w(void *x) { u.h[0] = 1; return 0; }
void *v(void *x) { int t = u.i; sched_yield(); u.i = t + 0x10000; return 0; }
int main(void) {
  pthread_t a, b; 
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, v, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(u.i == 0x10001);
  return 0;
}
