/* sem_wait on a named semaphore after sem_close: SIGSEGV natively */
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

/* resource (semclose) released by a worker under the lock, used by main under the lock: use after release if the worker is first.
   the recorded run is the good one because the worker sleeps first */
static M m=MI; static sem_t*s;
static void *w(void*p){ usleep(1000); L(m); sem_close(s); U(m); return 0; }
int main(){ s=sem_open("/fownsem",O_CREAT,0600,1); sem_unlink("/fownsem"); T a; GO(a,w,0); L(m); sem_wait(s); sem_post(s); U(m); J(a); return 0; }
