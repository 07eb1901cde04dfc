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
long from[2], to[2]; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *w(void *x) { pthread_mutex_lock(&m); from[0]++; pthread_mutex_unlock(&m); sched_yield(); pthread_mutex_lock(&m); from[1]++; pthread_mutex_unlock(&m); return 0; }
void *v(void *x) { pthread_mutex_lock(&m); memcpy(to, from, sizeof from); pthread_mutex_unlock(&m); return 0; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, v, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(to[0] == to[1]);
  return 0;
}
