/* as exit_status_order */
#include "short.h"
/* exit status depends on the order */
static M m=MI; static int last;
static void *w(void*p){ L(m); last=(intptr_t)p; U(m); return 0; }
int main(){ T a,b; GO(a,w,1); GO(b,w,0); J(a); J(b); return last; }
