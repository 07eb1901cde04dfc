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
__int128 big; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *w(void *x) { pthread_mutex_lock(&m); __int128 t = big; pthread_mutex_unlock(&m); sched_yield(); pthread_mutex_lock(&m); big = t + ((__int128)1 << 70); pthread_mutex_unlock(&m); return 0; }
int main(void) {
  pthread_t a, b; 
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, w, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert((long)(big >> 70) == 2);
  return 0;
}
