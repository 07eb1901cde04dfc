/* EXPECTED: 10: exit status 2 (14 of 40 random schedules)
   GOT: exit 0, nothing found; all behaviours of this input were covered */
/* BUG: chooses by ?: between stale values, exit status */
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
static int stock=1, sold;
static void *buy(void*p){ L(m); int s=stock; U(m); L(m); stock-=s>0?1:0; sold+=s>0?1:0; U(m); return 0; }
int main(){ RUN2(buy,buy); return stock<0?2:0; }
