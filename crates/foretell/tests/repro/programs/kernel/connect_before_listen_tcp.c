/* usleep is no synchronisation: connect before listen is ECONNREFUSED; fails natively */
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
#include <netinet/in.h>
#include <arpa/inet.h>
static int ls; static struct sockaddr_in A;
static void *srv(void*x){ listen(ls,4); int c=accept(ls,0,0); close(c); return 0; }
int main(){ ls=socket(AF_INET,SOCK_STREAM,0); A=(struct sockaddr_in){.sin_family=AF_INET,.sin_addr={htonl(INADDR_LOOPBACK)}}; bind(ls,(void*)&A,sizeof A); socklen_t l=sizeof A; getsockname(ls,(void*)&A,&l); T t; GO(t,srv,0); usleep(100000); int c=socket(AF_INET,SOCK_STREAM,0); int k=connect(c,(void*)&A,sizeof A); assert(k==0); J(t); return 0; }
