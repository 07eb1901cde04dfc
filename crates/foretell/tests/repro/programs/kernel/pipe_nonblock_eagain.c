/* late consumer: O_NONBLOCK write gets EAGAIN, assertion fails natively */
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
/* nonblocking wake-up pipe, paced producer: EAGAIN when the consumer is slow */
static int p[2]; static char msg[2048];
static void *prod(void*x){ for(int i=0;i<4;i++){ ssize_t r=write(p[1],msg,sizeof msg); assert(r==sizeof msg); usleep(10000);} return 0; }
int main(){ pipe2(p,0); fcntl(p[1],F_SETFL,O_NONBLOCK); fcntl(p[1],F_SETPIPE_SZ,4096); T a; GO(a,prod,0); static char b[2048]; for(int i=0;i<4;i++){ ssize_t r=read(p[0],b,sizeof b); assert(r==sizeof b);} J(a); return 0; }
