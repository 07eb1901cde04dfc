/* EXPECTED: 10/11/12: data race of qsort and reader
   GOT: exit 0, nothing found; all behaviours of this input were covered */
/* BUG: qsort sorts the shared array while the other reads it unlocked: sees duplicate/missing value */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <time.h>
#include <errno.h>
#include <assert.h>
#include <sched.h>
#include <semaphore.h>
#define RUN2(f,g) pthread_t a_,b_; pthread_create(&a_,0,f,0); pthread_create(&b_,0,g,0); pthread_join(a_,0); pthread_join(b_,0)
#define L(m) pthread_mutex_lock(&m)
#define U(m) pthread_mutex_unlock(&m)
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int a[3]={3,1,2};
static int cmp(const void*x,const void*y){ return *(int*)x-*(int*)y; }
static void *t(void*p){ qsort(a,3,sizeof*a,cmp); return 0; }
static void *u(void*p){ int s=a[0]+a[1]+a[2]; assert(s==6); return 0; }
int main(){ RUN2(u,t); return 0; }
