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
sem_t a, b;
void *f(void *p) { sem_wait(&a); sched_yield(); sem_wait(&b); sem_post(&b); sem_post(&a); return 0; }
int main(void) { pthread_t t; sem_init(&a, 0, 1); sem_init(&b, 0, 1); pthread_create(&t, 0, f, 0); sem_wait(&b); sched_yield(); sem_wait(&a); sem_post(&a); sem_post(&b); pthread_join(t, 0); return 0; }
