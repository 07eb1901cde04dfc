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
struct s { int a; char pad[3]; int b; } g = {1, "", 1};
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *w(void *x) { pthread_mutex_lock(&m); g.a++; pthread_mutex_unlock(&m); pthread_mutex_lock(&m); g.b++; pthread_mutex_unlock(&m); return 0; }
void *v(void *x) { pthread_mutex_lock(&m); struct s c = g; pthread_mutex_unlock(&m); assert(c.a == c.b); return 0; }
int main(void) {
  pthread_t a, b; 
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, v, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  
  return 0;
}
