/* as above, datagram */
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
/* datagram to a name that is not yet bound */
#include <sys/un.h>
static struct sockaddr_un A={.sun_family=AF_UNIX,.sun_path="\0foretellown3"};
static void *srv(void*x){ int s=socket(AF_UNIX,SOCK_DGRAM,0); bind(s,(void*)&A,sizeof A); char b[8]; ssize_t r=recv(s,b,8,0); assert(r==2); close(s); return 0; }
int main(){ T t; GO(t,srv,0); usleep(100000); int c=socket(AF_UNIX,SOCK_DGRAM,0); ssize_t r=sendto(c,"hi",2,0,(void*)&A,sizeof A); assert(r==2); J(t); return 0; }
