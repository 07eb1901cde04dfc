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
pthread_key_t k; int n; void end(void *p) { n = *(int *)p; }
void *f(void *p) { static int v = 4; pthread_setspecific(k, &v); return 0; }
int main(void) { pthread_t a; pthread_key_create(&k, end); pthread_create(&a, 0, f, 0); pthread_join(a, 0); assert(n == 0); return 0; }
