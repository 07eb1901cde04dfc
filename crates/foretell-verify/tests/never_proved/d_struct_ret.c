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
struct B { long a, b, c, d; }; struct B make(long x) { struct B b = { x, x + 1, x + 2, x + 3 }; return b; }
int main(void) { struct B b = make(5); b = make(b.d); assert(b.d == 10); return 0; }
