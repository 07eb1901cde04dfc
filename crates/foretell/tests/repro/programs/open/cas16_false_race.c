/* all accesses of g are atomic (16 byte _Atomic struct by libatomic) */
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
typedef struct{ long p; long tag;} D __attribute__((aligned(16))); static _Atomic D g;
static void inc(){ D o=atomic_load(&g),n; do{ n.p=o.p+1; n.tag=o.tag+1; }while(!atomic_compare_exchange_strong(&g,&o,n)); }
static void *w(void*p){ inc(); return 0; }
int main(){ T a; GO(a,w,0); inc(); J(a); D o=atomic_load(&g); assert(o.p==2&&o.tag==2); return 0; }
