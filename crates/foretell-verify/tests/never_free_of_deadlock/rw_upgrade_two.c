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
pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
void *f(void *p) { pthread_rwlock_rdlock(&l); sched_yield(); pthread_rwlock_wrlock(&l); pthread_rwlock_unlock(&l); return 0; }
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); f(0); pthread_join(t, 0); return 0; }
