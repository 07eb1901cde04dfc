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
pthread_mutex_t m[3] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
void *f(void *p) { long i = (long)p; pthread_mutex_lock(&m[i]); sched_yield(); pthread_mutex_lock(&m[(i + 1) % 3]); pthread_mutex_unlock(&m[(i + 1) % 3]); pthread_mutex_unlock(&m[i]); return 0; }
int main(void) { pthread_t t[3]; for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, f, (void *)i); for (int i = 0; i < 3; i++) pthread_join(t[i], 0); return 0; }
