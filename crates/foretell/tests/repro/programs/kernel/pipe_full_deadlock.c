/* producer first: pipe full, second write blocks with m held, consumer waits for m for ever */
#include "short.h"
/* F_SETPIPE_SZ 4096; two messages of a page */
static M m=MI; static int p[2]; static int stat; static char big[4096];
static void *prod(void*x){ for(int i=0;i<2;i++){ L(m); stat++; ssize_t r=write(p[1],big,sizeof big); assert(r==sizeof big); U(m);} return 0; }
static void *cons(void*x){ static char b[4096]; for(int i=0;i<2;i++){ L(m); stat++; U(m); ssize_t r=read(p[0],b,sizeof b); assert(r==4096); } return 0; }
int main(){ pipe(p); fcntl(p[1],F_SETPIPE_SZ,4096); T a,b; GO(b,cons,0); GO(a,prod,0); J(a); J(b); return 0; }
