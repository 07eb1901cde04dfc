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
sem_t s; int in, most;
void *f(void *p) { sem_wait(&s); in++; if (in > most) most = in; sched_yield(); in--; sem_post(&s); return 0; }
int main(void) { pthread_t a, b; sem_init(&s, 0, 2); pthread_create(&a, 0, f, 0); pthread_create(&b, 0, f, 0); pthread_join(a, 0); pthread_join(b, 0); assert(most < 2); return 0; }
