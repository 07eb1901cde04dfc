/* if w locks first, main reads buf[0] after free(buf); ASan shows it natively. Same result with getline, realpath(..,NULL), getcwd(NULL,0), sscanf %ms, tempnam, wcsdup (strdup, strndup, aligned_alloc are right) */
#include "short.h"
/* lib-allocated memory (asprintf), freed by another thread, then read under the lock: use after free if w first */
static M m=MI; static char*buf; static unsigned total;
static void *w(void*p){ L(m); free(buf); U(m); return 0; }
int main(){ if(asprintf(&buf,"abc %d",4)<0) return 1; T a; GO(a,w,0); L(m); total+=buf[0]; U(m); J(a); return 0; }
