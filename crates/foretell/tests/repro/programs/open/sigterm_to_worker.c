/* SIGTERM is blocked in main only; if the worker still lives, it takes the default action and the process dies (native rc 143) */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <assert.h>
#include <unistd.h>
#include <errno.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <sys/mman.h>
#include <search.h>
#include <ctype.h>
#include <limits.h>
typedef pthread_mutex_t M; typedef pthread_cond_t C; typedef pthread_t T;
#define MI PTHREAD_MUTEX_INITIALIZER
#define CI PTHREAD_COND_INITIALIZER
#define L(m) pthread_mutex_lock(&(m))
#define U(m) pthread_mutex_unlock(&(m))
#define GO(t,f,a) pthread_create(&(t),0,f,(void*)(intptr_t)(a))
#define J(t) pthread_join(t,0)
/* SIGTERM is blocked in main only, after the thread was made: the worker gets the signal and the process dies unless the worker has ended */
static void *w(void*p){ usleep(1); return 0; }
int main(){ T a; GO(a,w,0); sigset_t s; sigemptyset(&s); sigaddset(&s,SIGTERM); pthread_sigmask(SIG_BLOCK,&s,0); usleep(100000); kill(getpid(),SIGTERM); int g; sigwait(&s,&g); J(a); return 0; }
