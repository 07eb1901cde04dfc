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
float f = 16777215.0f; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *w(void *x) { pthread_mutex_lock(&m); f = f + 1; pthread_mutex_unlock(&m); return 0; }
int main(void) {
  pthread_t a, b; 
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, w, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(f == 16777217.0);
  return 0;
}
