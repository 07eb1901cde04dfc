/* if main locks first, w calls fprintf on a closed FILE: UB, use of freed memory (valgrind shows it for fputs) */
#include "short.h"
/* logger is closed by main under the lock, worker logs after without checking */
static M m=MI; static FILE*lf;
static void *w(void*p){ for(int i=0;i<2;i++){ L(m); fprintf(lf,"hello %d\n",i); U(m);} return 0; }
int main(){ lf=fopen("/dev/null","w"); T a; GO(a,w,0); L(m); fclose(lf); U(m); J(a); return 0; }
