/* the work is done in the child that daemon() makes; the exit status of the parent is taken for the program's */
#include "short.h"
static M m=MI; static int n; static void *w(void*x){ L(m); int v=n; U(m); L(m); n=v+1; U(m); return 0; }
int main(){ if(daemon(1,1)) return 1; T a,b; GO(a,w,0); GO(b,w,0); J(a); J(b); assert(n==2); return 0; }
