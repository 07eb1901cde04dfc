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
pthread_barrier_t b;
void *f(void *p) { pthread_barrier_wait(&b); return 0; }
int main(void) { pthread_t t; pthread_barrier_init(&b, 0, 3); pthread_create(&t, 0, f, 0); pthread_barrier_wait(&b); pthread_join(t, 0); return 0; }
