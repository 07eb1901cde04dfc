/* what the C library allocated (getline) is read after another thread freed it */
#include "short.h"
/* lib-allocated memory (getline), freed by another thread, then read under the lock: use after free if w first */
static M m=MI; static char*buf; static unsigned total;
static void *w(void*p){ L(m); free(buf); U(m); return 0; }
int main(){ size_t n=0; FILE*f=fopen("/etc/passwd","r"); if(getline(&buf,&n,f)<0) return 1; fclose(f); T a; GO(a,w,0); L(m); total+=buf[0]; U(m); J(a); return 0; }
