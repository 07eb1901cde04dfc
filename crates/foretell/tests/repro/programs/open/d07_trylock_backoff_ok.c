// TRUTH ok
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
static inline void run2(void *(*f)(void *), void *(*g)(void *)) {
  pthread_t a, b; pthread_create(&a, 0, f, 0); pthread_create(&b, 0, g, 0);
  pthread_join(a, 0); pthread_join(b, 0);
}
#define T(f) static void *f(void *arg)
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER; static int n;
T(f) { pthread_mutex_lock(&a); pthread_mutex_lock(&b); n++; pthread_mutex_unlock(&b); pthread_mutex_unlock(&a); return 0; }
T(g) { for (;;) { pthread_mutex_lock(&b); if (pthread_mutex_trylock(&a) == 0) break; pthread_mutex_unlock(&b); sched_yield(); } n++; pthread_mutex_unlock(&a); pthread_mutex_unlock(&b); return 0; }
int main(void) { run2(f, g); assert(n == 2); return 0; }
