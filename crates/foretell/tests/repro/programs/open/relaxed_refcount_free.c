/* o->v++ and free(o) by another thread are ordered by relaxed RMW only: data race in C11. With a plain read before free it is 12 (q/g01) */
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
/* release with relaxed: the free is not ordered after the other's use */
struct o{_Atomic int r; int v;}; static void put(struct o*o){ if(atomic_fetch_sub_explicit(&o->r,1,memory_order_relaxed)==1) free(o); }
static void *w(void*p){ struct o*o=p; o->v++; put(o); return 0; }
int main(){ struct o*o=malloc(sizeof*o); o->r=2; o->v=1; T a; GO(a,w,o); put(o); J(a); return 0; }
