/* valgrind: invalid read in fwrite after fclose */
#include "short.h"

/* resource (fclose_fputs) released by a worker under the lock, used by main under the lock: use after release if the worker is first.
   the recorded run is the good one because the worker sleeps first */
static M m=MI; static FILE*f;
static void *w(void*p){ usleep(1000); L(m); fclose(f); U(m); return 0; }
int main(){ f=fopen("/dev/null","w"); T a; GO(a,w,0); L(m); fputs("hello",f); U(m); J(a); return 0; }
