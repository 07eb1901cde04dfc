/* string given to putenv is freed before getenv: valgrind invalid read */
#include "short.h"

/* resource (putenv) released by a worker under the lock, used by main under the lock: use after release if the worker is first.
   the recorded run is the good one because the worker sleeps first */
static M m=MI; static char*e;
static void *w(void*p){ usleep(1000); L(m); free(e); U(m); return 0; }
int main(){ e=strdup("FOO=1"); putenv(e); T a; GO(a,w,0); L(m); assert(getenv("FOO")); U(m); J(a); return 0; }
