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
#include <stdint.h>
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <alloca.h>
pthread_once_t o = PTHREAD_ONCE_INIT; int n; void init(void) { n++; }
void *f(void *p) { if (n == 0) sched_yield(); pthread_once(&o, init); return 0; }
int main(void) { pthread_t a; pthread_create(&a, 0, f, 0); f(0); pthread_join(a, 0); assert(n == 2); return 0; }
