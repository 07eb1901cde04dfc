// TRUTH bug
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
static atomic_int x; static jmp_buf j;
T(f) { atomic_store(&x, 1); atomic_store(&x, 0); return 0; }
T(g) { int r = setjmp(j); if (!r) longjmp(j, atomic_load(&x) + 1); assert(r == 1); return 0; }
int main(void) { run2(f, g); return 0; }
