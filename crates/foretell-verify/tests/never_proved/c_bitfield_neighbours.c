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
struct { unsigned a : 4, b : 4; } s;
void *w(void *x) { s.a = 1; return 0; }
void *v(void *x) { s.b = 2; return 0; }
int main(void) {
  pthread_t a, b; 
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, v, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(s.a == 1 && s.b == 2);
  return 0;
}
