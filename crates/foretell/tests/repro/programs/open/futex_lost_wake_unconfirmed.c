/* waiter sleeps with f==1, unlock wakes only for 2 */
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
#include <linux/futex.h>
#include <sys/syscall.h>
/* broken mutex: state 1 locked without "waiters" mark -> unlock wakes only if state was 2, which nobody sets when ... lost wake */
static _Atomic int f; static int n;
static void lock(){ int e=0; while(!atomic_compare_exchange_strong(&f,&e,1)){ syscall(SYS_futex,&f,FUTEX_WAIT_PRIVATE,1,0,0,0); e=0; } }
static void un(){ if(atomic_exchange(&f,0)==2) syscall(SYS_futex,&f,FUTEX_WAKE_PRIVATE,1,0,0,0); }
static void *w(void*p){ lock(); n++; un(); return 0; }
int main(){ T a; GO(a,w,0); w(0); J(a); assert(n==2); return 0; }
