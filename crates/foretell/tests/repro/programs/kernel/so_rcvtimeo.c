/* SO_RCVTIMEO of 1 s may be over before the sender is scheduled (poll, select are said with 12); fails natively with a slow sender */
#include "short.h"
static int s[2];
static void *w(void*x){ usleep(10); send(s[1],"a",1,0); return 0; }
int main(){ socketpair(AF_UNIX,SOCK_STREAM,0,s); struct timeval tv={1,0}; setsockopt(s[0],SOL_SOCKET,SO_RCVTIMEO,&tv,sizeof tv); T a; GO(a,w,0); char c; ssize_t r=recv(s[0],&c,1,0); assert(r==1); J(a); return 0; }
