/* msgsnd blocks at 16 KiB with m held; hangs natively */
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
#include <sys/msg.h>
static int q; struct mb{long t; char v[8000];}; static M m=MI; static int n;
static void *prod(void*x){ static struct mb b={1}; for(int i=0;i<3;i++){ L(m); n++; msgsnd(q,&b,8000,0); U(m);} return 0; }
int main(){ q=msgget(IPC_PRIVATE,0600); T t; GO(t,prod,0); static struct mb b; for(int i=0;i<3;i++){ L(m); n++; U(m); msgrcv(q,&b,8000,0,0);} J(t); msgctl(q,IPC_RMID,0); return 0; }
