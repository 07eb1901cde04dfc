/* RLIMIT_NOFILE allows one more descriptor: two at once give EMFILE; fails natively */
#include "short.h"
/* descriptor limit: two threads hold one descriptor each at the same time or not */
static void *w(void*x){ int fd=dup(0); assert(fd>=0); usleep(1000); close(fd); return 0; }
int main(){ int k=dup(0); close(k); struct rlimit r={k+1,k+1}; setrlimit(RLIMIT_NOFILE,&r); T t; GO(t,w,0); usleep(100000); w(0); J(t); return 0; }
