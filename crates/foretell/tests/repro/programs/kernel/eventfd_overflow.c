/* an engine fault whatever the program */
#include "short.h"
/* eventfd at its maximum blocks the writer: with the lock held */
static M m=MI; static int e; static int stat;
static void *prod(void*x){ for(int i=0;i<2;i++){ L(m); stat++; uint64_t v=UINT64_MAX-1; ssize_t r=write(e,&v,8); assert(r==8); U(m);} return 0; }
int main(){ e=eventfd(0,0); T a; GO(a,prod,0); for(int i=0;i<2;i++){ L(m); stat++; U(m); uint64_t v; ssize_t r=read(e,&v,8); assert(r==8);} J(a); return 0; }
