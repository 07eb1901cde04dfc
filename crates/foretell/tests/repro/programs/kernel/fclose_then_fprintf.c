/* if main locks first, w calls fprintf on a closed FILE: UB, use of freed memory (valgrind shows it for fputs) */
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
/* logger is closed by main under the lock, worker logs after without checking */
static M m=MI; static FILE*lf;
static void *w(void*p){ for(int i=0;i<2;i++){ L(m); fprintf(lf,"hello %d\n",i); U(m);} return 0; }
int main(){ lf=fopen("/dev/null","w"); T a; GO(a,w,0); L(m); fclose(lf); U(m); J(a); return 0; }
