/* usleep is no synchronisation: connect before listen is ECONNREFUSED; fails natively */
#include "short.h"
static int ls; static struct sockaddr_in A;
static void *srv(void*x){ listen(ls,4); int c=accept(ls,0,0); close(c); return 0; }
int main(){ ls=socket(AF_INET,SOCK_STREAM,0); A=(struct sockaddr_in){.sin_family=AF_INET,.sin_addr={htonl(INADDR_LOOPBACK)}}; bind(ls,(void*)&A,sizeof A); socklen_t l=sizeof A; getsockname(ls,(void*)&A,&l); T t; GO(t,srv,0); usleep(100000); int c=socket(AF_INET,SOCK_STREAM,0); int k=connect(c,(void*)&A,sizeof A); assert(k==0); J(t); return 0; }
