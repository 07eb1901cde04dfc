/* b before a gives exit status 1 and a message (native rc 1); docs: whether main returns 0 counts as a branch; exit code 0 means all behaviours covered, nothing found */
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
static M m=MI; static int first=-1;
static void *w(void*p){ L(m); if(first<0) first=(intptr_t)p; U(m); return 0; }
int main(){ T a,b; GO(a,w,0); GO(b,w,1); J(a); J(b); if(first!=0){ fprintf(stderr,"bad order\n"); return 1; } return 0; }
