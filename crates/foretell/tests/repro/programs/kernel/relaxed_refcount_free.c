/* o->v++ and free(o) by another thread are ordered by relaxed RMW only: data race in C11. With a plain read before free it is 12 (q/g01) */
#include "short.h"
/* release with relaxed: the free is not ordered after the other's use */
struct o{_Atomic int r; int v;}; static void put(struct o*o){ if(atomic_fetch_sub_explicit(&o->r,1,memory_order_relaxed)==1) free(o); }
static void *w(void*p){ struct o*o=p; o->v++; put(o); return 0; }
int main(){ struct o*o=malloc(sizeof*o); o->r=2; o->v=1; T a; GO(a,w,o); put(o); J(a); return 0; }
