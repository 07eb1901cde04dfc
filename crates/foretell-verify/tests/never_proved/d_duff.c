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
int main(void) { int n = 0, c = 5; switch (c % 4) { case 0: do { n++; case 3: n++; case 2: n++; case 1: n++; } while ((c -= 4) > 0); } assert(n == 4); return 0; }
