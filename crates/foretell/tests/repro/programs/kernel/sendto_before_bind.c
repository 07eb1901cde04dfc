/* sendto before bind is refused, datagrams */
#include "short.h"
/* datagram to a name that is not yet bound */
static struct sockaddr_un A={.sun_family=AF_UNIX,.sun_path="\0foretellown3"};
static void *srv(void*x){ int s=socket(AF_UNIX,SOCK_DGRAM,0); bind(s,(void*)&A,sizeof A); char b[8]; ssize_t r=recv(s,b,8,0); assert(r==2); close(s); return 0; }
int main(){ T t; GO(t,srv,0); usleep(100000); int c=socket(AF_UNIX,SOCK_DGRAM,0); ssize_t r=sendto(c,"hi",2,0,(void*)&A,sizeof A); assert(r==2); J(t); return 0; }
