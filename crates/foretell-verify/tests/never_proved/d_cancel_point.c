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
sem_t s; int n;
void *f(void *p) { sem_wait(&s); n = 1; return 0; }
int main(void) { pthread_t t; sem_init(&s, 0, 0); pthread_create(&t, 0, f, 0); pthread_cancel(t); pthread_join(t, 0); assert(n == 1); return 0; }
