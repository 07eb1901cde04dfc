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
sem_t s; int in;
void *w(void *x) { sem_wait(&s); int t = in; sched_yield(); in = t + 1; sem_post(&s); return 0; }
int main(void) {
  pthread_t a, b; sem_init(&s, 0, 2);
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, w, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(in == 2);
  return 0;
}
