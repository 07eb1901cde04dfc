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
int *g;
void *w(void *x) { int *p = (int[]){1, 2, 3}; g = p; sched_yield(); assert(g == p); return 0; }
int main(void) {
  pthread_t a, b; 
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, w, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  
  return 0;
}
