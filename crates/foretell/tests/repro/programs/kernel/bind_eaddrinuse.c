/* both threads have the name bound at once: EADDRINUSE; fails natively */
#include "short.h"
/* two threads bind the same abstract name: the second gets EADDRINUSE; only one may be expected to, here each asserts */
static struct sockaddr_un A={.sun_family=AF_UNIX,.sun_path="\0foretellown2"}; static M m=MI;
static void *w(void*x){ L(m); int s=socket(AF_UNIX,SOCK_DGRAM,0); int r=bind(s,(void*)&A,sizeof A); close(s); U(m); assert(r==0); return 0; }
static void *v(void*x){ int s=socket(AF_UNIX,SOCK_DGRAM,0); int r=bind(s,(void*)&A,sizeof A); close(s); assert(r==0); return 0; }
int main(){ T t; GO(t,w,0); v(0); J(t); return 0; }
