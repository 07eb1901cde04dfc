/* a late reader gets 2 or more expirations by one read; how many decides what is printed */
#include "short.h"
static int fd; static int ticks; static M m=MI;
static void *w(void*p){ uint64_t v; for(int i=0;i<2;i++){ read(fd,&v,8); L(m); ticks+=v; U(m);} return 0; }
int main(){ fd=timerfd_create(CLOCK_MONOTONIC,0); struct itimerspec s={{0,1000000},{0,1000000}}; timerfd_settime(fd,0,&s,0); T a; GO(a,w,0); J(a); printf("%d\n",ticks); assert(ticks>=2); return 0; }
