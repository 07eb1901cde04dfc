/* a late reader gets 2 or more expirations by one read; fails natively */
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
#include <sys/timerfd.h>
static int fd; static int ticks; static M m=MI;
static void *w(void*p){ uint64_t v; for(int i=0;i<2;i++){ read(fd,&v,8); L(m); ticks+=v; U(m);} return 0; }
int main(){ fd=timerfd_create(CLOCK_MONOTONIC,0); struct itimerspec s={{0,1000000},{0,1000000}}; timerfd_settime(fd,0,&s,0); T a; GO(a,w,0); J(a); assert(ticks==2); return 0; }
