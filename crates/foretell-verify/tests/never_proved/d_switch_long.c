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
int f(long x) { switch (x) { case 0x100000001L: return 1; case 1: return 2; } return 0; }
int main(void) { assert(f(0x100000001L) == 2); return 0; }
