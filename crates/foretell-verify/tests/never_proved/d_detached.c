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
int n; void *f(void *p) { pthread_detach(pthread_self()); n = 1; return 0; }
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); usleep(1000); assert(n == 0); return 0; }
