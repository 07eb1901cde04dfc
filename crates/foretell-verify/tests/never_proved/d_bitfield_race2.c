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
struct { unsigned a : 8, b : 8; } s;
void *f(void *p) { s.a = 1; return 0; }
void *g(void *p) { s.b = 1; return 0; }
int main(void) { for (int i = 0; i < 1; i++) { pthread_t a, b; pthread_create(&a, 0, f, 0); pthread_create(&b, 0, g, 0); pthread_join(a, 0); pthread_join(b, 0); assert(s.a + s.b == 3); } return 0; }
