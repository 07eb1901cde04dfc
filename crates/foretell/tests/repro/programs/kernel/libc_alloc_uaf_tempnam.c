/* what the C library allocated (tempnam) is read after another thread freed it */
#include "short.h"
/* lib-allocated memory (tempnam), freed by another thread, then read under the lock: use after free if w first */
static M m=MI; static char*buf; static unsigned total;
static void *w(void*p){ L(m); free(buf); U(m); return 0; }
int main(){ buf=tempnam("/tmp","a"); T a; GO(a,w,0); L(m); total+=buf[0]; U(m); J(a); return 0; }
