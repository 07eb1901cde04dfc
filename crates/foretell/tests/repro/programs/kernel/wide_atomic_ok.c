/* all accesses of g are atomic (16 byte _Atomic struct by libatomic) */
#include "short.h"
typedef struct{ long p; long tag;} D __attribute__((aligned(16))); static _Atomic D g;
static void inc(){ D o=atomic_load(&g),n; do{ n.p=o.p+1; n.tag=o.tag+1; }while(!atomic_compare_exchange_strong(&g,&o,n)); }
static void *w(void*p){ inc(); return 0; }
int main(){ T a; GO(a,w,0); inc(); J(a); D o=atomic_load(&g); assert(o.p==2&&o.tag==2); return 0; }
