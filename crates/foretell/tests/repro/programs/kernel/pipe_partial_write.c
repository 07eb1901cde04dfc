/* O_NONBLOCK pipe, late reader: partial write / EAGAIN; fails natively */
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
/* nonblocking writer, partial write not handled: 100 KB into a 64 KB pipe */
static int p[2]; static char b[100000]; static void *wr(void*x){ size_t o=0; while(o<sizeof b){ ssize_t r=write(p[1],b+o,sizeof b-o>50000?50000:sizeof b-o); assert(r==50000); o+=r; usleep(1000);} close(p[1]); return 0; }
int main(){ pipe(p); fcntl(p[1],F_SETFL,O_NONBLOCK); T t; GO(t,wr,0); static char c[100000]; size_t g=0; ssize_t r; while((r=read(p[0],c,sizeof c))>0) g+=r; assert(g==sizeof b); J(t); return 0; }
