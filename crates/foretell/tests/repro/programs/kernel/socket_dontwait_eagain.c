/* late receiver: MSG_DONTWAIT send gets EAGAIN, assertion fails natively */
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
static int s[2]; static char msg[65536];
static void *prod(void*x){ for(int i=0;i<8;i++){ ssize_t r=send(s[1],msg,sizeof msg,MSG_DONTWAIT); assert(r==sizeof msg); usleep(10000);} return 0; }
int main(){ socketpair(AF_UNIX,SOCK_SEQPACKET,0,s); T a; GO(a,prod,0); static char b[65536]; for(int i=0;i<8;i++){ ssize_t r=recv(s[0],b,sizeof b,0); assert(r==sizeof b);} J(a); return 0; }
