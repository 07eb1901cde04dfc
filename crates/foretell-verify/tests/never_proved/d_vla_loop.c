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
int main(void) { int s = 0; for (int n = 1; n < 4; n++) { int a[n]; a[n - 1] = n; int b = 2; int *p = &b; s += a[n - 1] * *p; } assert(s == 6); return 0; }
