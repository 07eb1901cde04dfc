/* reader saw closed==0 and blocks in read; close of the read end by another thread does not wake it (Linux): hangs natively */
#include "short.h"
/* close() of a pipe's read end does not wake a reader that is already blocked: hang if the reader was first */
static int p[2]; static M m=MI; static int closed;
static void *rd(void*x){ usleep(1000); L(m); int c=closed; U(m); if(c) return 0; char b; ssize_t r=read(p[0],&b,1); (void)r; return 0; }
int main(){ pipe(p); T t; GO(t,rd,0); L(m); closed=1; U(m); close(p[0]); J(t); return 0; }
