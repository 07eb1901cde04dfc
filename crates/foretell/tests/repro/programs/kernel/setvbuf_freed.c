/* buffer given to setvbuf is freed before fputs: valgrind invalid write */
#include "short.h"

/* resource (setvbuf) released by a worker under the lock, used by main under the lock: use after release if the worker is first.
   the recorded run is the good one because the worker sleeps first */
static M m=MI; static FILE*f; static char*vb;
static void *w(void*p){ usleep(1000); L(m); free(vb); U(m); return 0; }
int main(){ f=fopen("/dev/null","w"); vb=malloc(1024); setvbuf(f,vb,_IOFBF,1024); T a; GO(a,w,0); L(m); fputs("hello",f); U(m); J(a); return 0; }
