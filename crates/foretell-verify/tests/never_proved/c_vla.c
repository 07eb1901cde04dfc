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
int sum;
void *w(void *x) { int k = sum + 2; int a[k]; for (int i = 0; i < k; i++) a[i] = 1; sched_yield(); int t = sum; sched_yield(); sum = t + (int)(sizeof a / sizeof *a); return 0; }
int main(void) {
  pthread_t a, b; 
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, w, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(sum == 6);
  return 0;
}
