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
#include <errno.h>
int n; void *w(void *x) { int t = n; sched_yield(); n = t + *(int *)x; return 0; }
int main(int argc, char **argv) { pthread_t a, b; pthread_create(&a, 0, w, &argc); pthread_create(&b, 0, w, &argc); pthread_join(a, 0); pthread_join(b, 0); assert(n == 2 * argc && argv[argc] == 0); return 0; }
