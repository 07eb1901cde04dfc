/* as relaxed_refcount_free */
#include "short.h"
/* relaxed refcount: object has a mutex that is destroyed by the last */
struct o{_Atomic int r; M m; int v;};
static void put(struct o*o){ if(atomic_fetch_sub_explicit(&o->r,1,memory_order_relaxed)==1){ free(o);} }
static void *w(void*p){ struct o*o=p; L(o->m); o->v++; U(o->m); put(o); return 0; }
int main(){ struct o*o=calloc(1,sizeof*o); o->r=2; pthread_mutex_init(&o->m,0); T a; GO(a,w,o); L(o->m); o->v++; U(o->m); put(o); J(a); return 0; }
