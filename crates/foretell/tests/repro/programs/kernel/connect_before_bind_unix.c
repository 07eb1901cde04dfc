/* connect before bind is refused, AF_UNIX */
#include "short.h"
static struct sockaddr_un A={.sun_family=AF_UNIX,.sun_path="\0foretellown1"};
static void *srv(void*x){ int ls=socket(AF_UNIX,SOCK_STREAM,0); bind(ls,(void*)&A,sizeof A); listen(ls,4); int c=accept(ls,0,0); close(c); return 0; }
int main(){ T t; GO(t,srv,0); usleep(100000); int c=socket(AF_UNIX,SOCK_STREAM,0); int k=connect(c,(void*)&A,sizeof A); assert(k==0); J(t); return 0; }
