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
pthread_key_t k; int shared;
void *w(void *x) { pthread_setspecific(k, &shared); int *p = pthread_getspecific(k); int t = *p; sched_yield(); *p = t + 1; return 0; }
int main(void) {
  pthread_t a, b; pthread_key_create(&k, 0);
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, w, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(shared == 2);
  return 0;
}
