/* EXPECTED: 10/12: heap write past the end
   GOT: exit 0, nothing found; all behaviours of this input were covered */
/* BUG: one-byte heap overflow only when the other thread has appended (malloc(24): spills into next chunk's size) */
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
static char*b; static int len=20;
static void *w(void*p){ L(m); len+=4; U(m); return 0; }
static void *r(void*p){ L(m); int n=len; U(m); b[n]=1; if(n>=24) { } return 0; }
int main(){ b=malloc(24); RUN2(r,w); free(b); return 0; }
