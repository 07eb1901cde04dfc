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
volatile int stop; int n;
void *f(void *p) { stop = 1; return 0; }
int main(void) { pthread_t a; pthread_create(&a, 0, f, 0); while (!stop) { n = 1; sched_yield(); } pthread_join(a, 0); assert(n == 0 || stop == 0); return 0; }
