// TRUTH ok getline grows a shared buffer under a lock
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
static char *b; static size_t n; static FILE *s; static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int sum;
T(f) { pthread_mutex_lock(&m); if (getline(&b, &n, s) > 0) sum += strlen(b); pthread_mutex_unlock(&m); return 0; }
int main(void) { static char t[300]; memset(t, 'a', 299); t[3] = '\n'; s = fmemopen(t, 299, "r"); run2(f, f); free(b); assert(sum == 299); return 0; }
