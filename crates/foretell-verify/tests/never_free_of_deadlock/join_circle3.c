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
pthread_t t[3]; sem_t s;
void *f(void *p) { long i = (long)p; sem_wait(&s); pthread_join(t[(i + 1) % 3], 0); return 0; }
int main(void) { sem_init(&s, 0, 0); for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, f, (void *)i); sem_post(&s); sem_post(&s); sem_post(&s); pthread_exit(0); }
