/* RLIMIT_NOFILE allows one more descriptor: two at once give EMFILE; fails natively */
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
/* descriptor limit: two threads hold one descriptor each at the same time or not */
#include <sys/resource.h>
static void *w(void*x){ int fd=dup(0); assert(fd>=0); usleep(1000); close(fd); return 0; }
int main(){ int k=dup(0); close(k); struct rlimit r={k+1,k+1}; setrlimit(RLIMIT_NOFILE,&r); T t; GO(t,w,0); usleep(100000); w(0); J(t); return 0; }
