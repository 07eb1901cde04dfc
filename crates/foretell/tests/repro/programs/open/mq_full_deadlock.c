/* producer first: queue of one message is full, mq_send blocks with m held; hangs natively */
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
#include <mqueue.h>
static mqd_t q; static M m=MI; static int n;
static void *prod(void*x){ for(int i=0;i<2;i++){ L(m); n++; mq_send(q,"m",1,0); U(m);} return 0; }
int main(){ struct mq_attr a={.mq_maxmsg=1,.mq_msgsize=8}; mq_unlink("/fown7"); q=mq_open("/fown7",O_CREAT|O_RDWR,0600,&a); if(q==(mqd_t)-1) return 0; mq_unlink("/fown7"); T t; GO(t,prod,0); char b[8]; for(int i=0;i<2;i++){ L(m); n++; U(m); mq_receive(q,b,8,0);} J(t); return 0; }
