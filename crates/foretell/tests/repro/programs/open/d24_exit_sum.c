/* EXPECTED: 10: exit status 5 (6 of 25 random schedules)
   GOT: exit 0, nothing found; all behaviours of this input were covered (1 run) */
/* BUG: exit status a+b-2 torn pair read by main, w detached */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <assert.h>
#include <semaphore.h>
#define RUN2(f,g) pthread_t a_,b_; pthread_create(&a_,0,f,0); pthread_create(&b_,0,g,0); pthread_join(a_,0); pthread_join(b_,0)
#define L(m) pthread_mutex_lock(&m)
#define U(m) pthread_mutex_unlock(&m)
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int a=1,b=1; static sem_t s;
static void *w(void*p){ L(m); a--; U(m); sem_post(&s); L(m); b++; U(m); return 0; }
int main(){ sem_init(&s,0,0); pthread_t t; pthread_create(&t,0,w,0); sem_wait(&s); L(m); int r=a+b; U(m); pthread_join(t,0); return r==2?0:5; }
