// TRUTH bug sigpending
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
T(g) { kill(getpid(), SIGUSR1); return 0; }
int main(void) { sigset_t s; sigemptyset(&s); sigaddset(&s, SIGUSR1); pthread_sigmask(SIG_BLOCK, &s, 0); pthread_t b; pthread_create(&b, 0, g, 0); sigset_t p; sigpending(&p); assert(!sigismember(&p, SIGUSR1)); pthread_join(b, 0); return 0; }
