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
pthread_rwlock_t l = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP; int r;
void *w(void *p) { pthread_rwlock_wrlock(&l); pthread_rwlock_unlock(&l); return 0; }
int main(void) { pthread_t a; pthread_rwlock_rdlock(&l); pthread_create(&a, 0, w, 0); usleep(20000); assert(pthread_rwlock_tryrdlock(&l) == 0); return 0; }
