/* SO_SNDTIMEO with a full buffer */
#include "short.h"
static int s[2]; static char msg[4096];
static void *prod(void*x){ for(int i=0;i<3;i++){ ssize_t r=send(s[1],msg,sizeof msg,0); assert(r==sizeof msg); usleep(10000);} return 0; }
int main(){ socketpair(AF_UNIX,SOCK_STREAM,0,s); int sz=4608; setsockopt(s[1],SOL_SOCKET,SO_SNDBUF,&sz,sizeof sz); struct timeval tv={1,0}; setsockopt(s[1],SOL_SOCKET,SO_SNDTIMEO,&tv,sizeof tv); T a; GO(a,prod,0); static char b[4096]; for(int i=0;i<3;i++){ ssize_t r=recv(s[0],b,sizeof b,MSG_WAITALL); assert(r==sizeof b);} J(a); return 0; }
