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
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *f(void *p) { pthread_mutex_lock(&m); pthread_exit(0); }
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); pthread_mutex_lock(&m); return 0; }
