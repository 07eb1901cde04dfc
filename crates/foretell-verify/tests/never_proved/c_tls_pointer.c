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
_Thread_local int mine; int *pub;
void *w(void *x) { mine = 1; pub = &mine; sched_yield(); assert(mine == 1); return 0; }
void *v(void *x) { int *p = pub; if (p) *p = 5; return 0; }
int main(void) { pthread_t a, b; pthread_create(&a, 0, w, 0); pthread_create(&b, 0, v, 0); pthread_join(b, 0); pthread_join(a, 0); return 0; }
