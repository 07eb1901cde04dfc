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
int n; void *w(void *x) { int t = n; sched_yield(); n = t + (int)(long)x; return (void *)(long)t; }
int main(void) { pthread_t t[3]; for (long i = 0; i < 3; i++) pthread_create(t + i, 0, w, (void *)(i + 1)); long s = 0; for (int i = 0; i < 3; i++) { void *r; pthread_join(t[i], &r); s += (long)r; } assert(n == 6); return 0; }
