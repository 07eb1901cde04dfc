/* late receiver: MSG_DONTWAIT send gets EAGAIN, assertion fails natively */
#include "short.h"
static int s[2]; static char msg[65536];
static void *prod(void*x){ for(int i=0;i<8;i++){ ssize_t r=send(s[1],msg,sizeof msg,MSG_DONTWAIT); assert(r==sizeof msg); usleep(10000);} return 0; }
int main(){ socketpair(AF_UNIX,SOCK_SEQPACKET,0,s); T a; GO(a,prod,0); static char b[65536]; for(int i=0;i<8;i++){ ssize_t r=recv(s[0],b,sizeof b,0); assert(r==sizeof b);} J(a); return 0; }
