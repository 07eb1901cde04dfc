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
pthread_t m; int r;
void *f(void *p) { sched_yield(); r = pthread_join(m, 0); assert(r == 0); return 0; }
int main(void) { pthread_t t; m = pthread_self(); pthread_create(&t, 0, f, 0); pthread_join(t, 0); return 0; }
