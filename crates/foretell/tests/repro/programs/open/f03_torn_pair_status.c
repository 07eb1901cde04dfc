/* EXPECTED: 10: exit status 1
   GOT: exit 0, nothing found; all behaviours of this input were covered (1 run) */
/* BUG: reader sees a half update (a!=b) and its verdict becomes the exit status, no branch */
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
static int a,b; static int bad;
static void *w(void*p){ L(m); a=1; U(m); L(m); b=1; U(m); return 0; }
static void *r(void*p){ L(m); bad|=(a!=b); U(m); return 0; }
int main(){ RUN2(r,w); return bad; }
