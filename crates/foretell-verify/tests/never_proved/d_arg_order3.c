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
struct S { int a, b, c, d, e; }; int n; static struct S mk(void) { struct S s = { ++n }; return s; }
static int minus(struct S a, struct S b) { return a.a - b.a; }
int main(void) { assert(minus(mk(), mk()) == -1); return 0; }
