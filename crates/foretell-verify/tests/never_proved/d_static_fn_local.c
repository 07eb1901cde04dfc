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
int next(void) { static int n = 5; return n++; }
void *f(void *p) { next(); return 0; }
int main(void) { pthread_t a; pthread_create(&a, 0, f, 0); next(); pthread_join(a, 0); assert(next() == 7); return 0; }
