/* EXPECTED: 10/12: pthread_mutex_unlock on freed memory
   GOT: exit 0, nothing found; all behaviours of this input were covered */
/* BUG: as l01, but malloc and o->done=0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sched.h>
struct o{ pthread_mutex_t m; atomic_int done; };
static void *w(void*p){ struct o*o=p; pthread_mutex_lock(&o->m); o->done=1; pthread_mutex_unlock(&o->m); return 0; }
int main(){ struct o*o=malloc(sizeof*o); o->done=0; pthread_mutex_init(&o->m,0); pthread_t t; pthread_create(&t,0,w,o); while(!o->done) sched_yield(); free(o); pthread_join(t,0); return 0; }
