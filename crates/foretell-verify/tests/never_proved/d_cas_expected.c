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
atomic_int x = 5;
int main(void) { int e = 3; _Bool b = atomic_compare_exchange_strong(&x, &e, 7); assert(!b && e == 3); return 0; }
