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
int main(void) { int c = 1, *q = 0; if (c) { q = alloca(8); q[0] = 5; } int z = 3; int *pz = &z; int *r = alloca(4); *r = 9; { int w = 1; int *pw = &w; *pw = 2; } assert(q[0] + *pz + *r == 0); return 0; }
