/* EXPECTED: 0
   GOT: 11: impossible prediction, calloc zero unknown (read = ?) */
/* GOOD: the worker's last access is done=1; main frees afterwards; calloc'd flag */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sched.h>
struct o{ int r; atomic_int done; };
static void *w(void*p){ struct o*o=p; o->r=5; o->done=1; return 0; }
int main(){ struct o*o=calloc(1,sizeof*o); pthread_t t; pthread_create(&t,0,w,o); while(!o->done) sched_yield(); int r=o->r; free(o); pthread_join(t,0); return r!=5; }
