/* EXPECTED: 10/12: dies of SIGUSR1 (native with a pause)
   GOT: exit 0, nothing found; all behaviours of this input were covered */
/* BUG: process-wide signal disposition changed: SIG_IGN vs raise in other thread */
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
#include <signal.h>
static void *t(void*p){ signal(SIGUSR1,SIG_IGN); raise(SIGUSR1); return 0; }
static void *u(void*p){ signal(SIGUSR1,SIG_DFL); return 0; }
int main(){ RUN2(u,t); return 0; }
