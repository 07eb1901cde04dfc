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
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_cond_t c = PTHREAD_COND_INITIALIZER; int items, got;
void *cons(void *x) { pthread_mutex_lock(&m); if (!items) pthread_cond_wait(&c, &m); assert(items > 0); items--; got++; pthread_mutex_unlock(&m); return 0; }
void *prod(void *x) { pthread_mutex_lock(&m); items++; pthread_cond_broadcast(&c); pthread_mutex_unlock(&m); return 0; }
int main(void) { pthread_t a, b, d; pthread_create(&a, 0, cons, 0); pthread_create(&b, 0, cons, 0); pthread_create(&d, 0, prod, 0); pthread_join(d, 0); pthread_mutex_lock(&m); items++; pthread_cond_signal(&c); pthread_mutex_unlock(&m); pthread_join(a, 0); pthread_join(b, 0); return 0; }
