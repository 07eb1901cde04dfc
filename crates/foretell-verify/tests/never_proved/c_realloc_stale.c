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
int *v; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; int n;
void *w(void *x) { pthread_mutex_lock(&m); v = realloc(v, 64 * sizeof *v); pthread_mutex_unlock(&m); return 0; }
void *r(void *x) { pthread_mutex_lock(&m); int k = n; pthread_mutex_unlock(&m); sched_yield(); pthread_mutex_lock(&m); n = k + 1; pthread_mutex_unlock(&m); return 0; }
int main(void) { pthread_t a, b, c; v = calloc(4, 4); pthread_create(&a, 0, w, 0); pthread_create(&b, 0, r, 0); pthread_create(&c, 0, r, 0); pthread_join(a, 0); pthread_join(b, 0); pthread_join(c, 0); assert(n == 2); return 0; }
