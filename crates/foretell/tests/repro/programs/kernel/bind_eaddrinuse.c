/* both threads have the name bound at once: EADDRINUSE; fails natively */
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
/* two threads bind the same abstract name: the second gets EADDRINUSE; only one may be expected to, here each asserts */
#include <sys/un.h>
static struct sockaddr_un A={.sun_family=AF_UNIX,.sun_path="\0foretellown2"}; static M m=MI;
static void *w(void*x){ L(m); int s=socket(AF_UNIX,SOCK_DGRAM,0); int r=bind(s,(void*)&A,sizeof A); close(s); U(m); assert(r==0); return 0; }
static void *v(void*x){ int s=socket(AF_UNIX,SOCK_DGRAM,0); int r=bind(s,(void*)&A,sizeof A); close(s); assert(r==0); return 0; }
int main(){ T t; GO(t,w,0); v(0); J(t); return 0; }
