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
pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER; int n;
void *w(void *x) { pthread_rwlock_rdlock(&l); int t = n; pthread_rwlock_unlock(&l); sched_yield(); pthread_rwlock_wrlock(&l); n = t + 1; pthread_rwlock_unlock(&l); return 0; }
int main(void) {
  pthread_t a, b; 
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, w, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(n == 2);
  return 0;
}
