/* SO_RCVTIMEO of 1 s may be over before the sender is scheduled (poll, select are said with 12); fails natively with a slow sender */
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
static int s[2];
static void *w(void*x){ usleep(10); send(s[1],"a",1,0); return 0; }
int main(){ socketpair(AF_UNIX,SOCK_STREAM,0,s); struct timeval tv={1,0}; setsockopt(s[0],SOL_SOCKET,SO_RCVTIMEO,&tv,sizeof tv); T a; GO(a,w,0); char c; ssize_t r=recv(s[0],&c,1,0); assert(r==1); J(a); return 0; }
