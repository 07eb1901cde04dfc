/* two threads wait for a flag */
#include "../kernel/short.h"
static _Atomic int f; static int n; static long fw(int v){return syscall(SYS_futex,&f,FUTEX_WAIT_PRIVATE,v,0,0,0);} static long fk(int k){return syscall(SYS_futex,&f,FUTEX_WAKE_PRIVATE,k,0,0,0);}
static void*w(void*p){while(f==0)fw(0);return 0;} int main(){T a,b;GO(a,w,0);GO(b,w,0);f=1;fk(9);J(a);J(b);return 0;}
