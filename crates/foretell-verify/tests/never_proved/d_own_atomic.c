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
int x;
void __VERIFIER_atomic_begin(void) {}
void __VERIFIER_atomic_end(void) {}
void *f(void *p) { __VERIFIER_atomic_begin(); int t = x; sched_yield(); x = t + 1; __VERIFIER_atomic_end(); return 0; }
int main(void) { pthread_t a, b; pthread_create(&a, 0, f, 0); pthread_create(&b, 0, f, 0); pthread_join(a, 0); pthread_join(b, 0); assert(x == 2); return 0; }
