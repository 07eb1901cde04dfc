/* as relaxed_refcount_free with a flag */
#include "short.h"
/* done flag relaxed; main then closes/frees */
static _Atomic int done; static char*buf;
static void *w(void*p){ buf[0]='x'; atomic_store_explicit(&done,1,memory_order_relaxed); return 0; }
int main(){ buf=malloc(8); T a; GO(a,w,0); while(!atomic_load_explicit(&done,memory_order_relaxed)) sched_yield(); free(buf); J(a); return 0; }
