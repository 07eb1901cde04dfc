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
#include <signal.h>
volatile int n; void h(int s) { n = 1; }
int main(void) { signal(SIGUSR1, h); raise(SIGUSR1); assert(n == 0); return 0; }
