/* an engine fault whatever the program */
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
/* eventfd at its maximum blocks the writer: with the lock held */
static M m=MI; static int e; static int stat;
static void *prod(void*x){ for(int i=0;i<2;i++){ L(m); stat++; uint64_t v=UINT64_MAX-1; ssize_t r=write(e,&v,8); assert(r==8); U(m);} return 0; }
int main(){ e=eventfd(0,0); T a; GO(a,prod,0); for(int i=0;i<2;i++){ L(m); stat++; U(m); uint64_t v; ssize_t r=read(e,&v,8); assert(r==8);} J(a); return 0; }
