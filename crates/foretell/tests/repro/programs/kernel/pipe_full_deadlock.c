/* producer first: pipe full, second write blocks with m held, consumer waits for m for ever; hangs natively. Also with the default 64 KiB pipe: q/a07 */
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
/* F_SETPIPE_SZ 4096; two messages of a page */
static M m=MI; static int p[2]; static int stat; static char big[4096];
static void *prod(void*x){ for(int i=0;i<2;i++){ L(m); stat++; ssize_t r=write(p[1],big,sizeof big); assert(r==sizeof big); U(m);} return 0; }
static void *cons(void*x){ static char b[4096]; for(int i=0;i<2;i++){ L(m); stat++; U(m); ssize_t r=read(p[0],b,sizeof b); assert(r==4096); } return 0; }
int main(){ pipe(p); fcntl(p[1],F_SETPIPE_SZ,4096); T a,b; GO(b,cons,0); GO(a,prod,0); J(a); J(b); return 0; }
