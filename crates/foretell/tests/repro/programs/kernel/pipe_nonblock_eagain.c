/* late consumer: O_NONBLOCK write gets EAGAIN, assertion fails natively */
#include "short.h"
/* nonblocking wake-up pipe, paced producer: EAGAIN when the consumer is slow */
static int p[2]; static char msg[2048];
static void *prod(void*x){ for(int i=0;i<4;i++){ ssize_t r=write(p[1],msg,sizeof msg); assert(r==sizeof msg); usleep(10000);} return 0; }
int main(){ pipe2(p,0); fcntl(p[1],F_SETFL,O_NONBLOCK); fcntl(p[1],F_SETPIPE_SZ,4096); T a; GO(a,prod,0); static char b[2048]; for(int i=0;i<4;i++){ ssize_t r=read(p[0],b,sizeof b); assert(r==sizeof b);} J(a); return 0; }
