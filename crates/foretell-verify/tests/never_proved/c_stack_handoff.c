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
int *p; sem_t s;
void *w(void *x) { int local = 1; p = &local; sem_post(&s); while (p) sched_yield(); assert(local == 1); return 0; }
void *v(void *x) { sem_wait(&s); *p = 2; p = 0; return 0; }
int main(void) {
  pthread_t a, b; sem_init(&s, 0, 0);
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, v, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  
  return 0;
}
