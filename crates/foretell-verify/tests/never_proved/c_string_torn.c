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
char s[4] = "aaa"; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *w(void *x) { for (int i = 0; i < 3; i++) { pthread_mutex_lock(&m); s[i] = 'b'; pthread_mutex_unlock(&m); } return 0; }
void *r(void *x) { pthread_mutex_lock(&m); int e = strcmp(s, "aaa") == 0 || strcmp(s, "bbb") == 0; pthread_mutex_unlock(&m); assert(e); return 0; }
int main(void) {
  pthread_t a, b; 
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, r, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  
  return 0;
}
