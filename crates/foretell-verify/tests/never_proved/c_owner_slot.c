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
pthread_mutex_t m; int got;
void *one(void *x) { pthread_mutex_lock(&m); return 0; }
void *two(void *x) { got = pthread_mutex_trylock(&m); return 0; }
int main(void) { pthread_mutexattr_t a; pthread_mutexattr_init(&a); pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE); pthread_mutex_init(&m, &a); pthread_t t, keep; pthread_create(&t, 0, one, 0); pthread_join(t, 0); pthread_create(&t, 0, two, 0); pthread_join(t, 0); assert(got == 0); return 0; }
