/* the last user of an object frees it; the count orders every use before that */
#include "short.h"
struct o{_Atomic int r; int v;};
static void put(struct o*o){
  if(atomic_fetch_sub_explicit(&o->r,1,memory_order_release)==1){ atomic_thread_fence(memory_order_acquire); free(o); }
}
static void *w(void*p){ struct o*o=p; int v=o->v; put(o); return (void*)(intptr_t)(v-1); }
int main(){ struct o*o=malloc(sizeof*o); o->r=2; o->v=1; T a; GO(a,w,o); int v=o->v; put(o); J(a); return v!=1; }
