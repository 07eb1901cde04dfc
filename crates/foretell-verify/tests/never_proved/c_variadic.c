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
int total;
void add(int n, ...) { va_list l; va_start(l, n); int t = total; sched_yield(); while (n--) t += va_arg(l, int); total = t; va_end(l); }
void *w(void *x) { add(2, 1, 1); return 0; }
int main(void) {
  pthread_t a, b; 
  pthread_create(&a, 0, w, 0); pthread_create(&b, 0, w, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  assert(total == 4);
  return 0;
}
