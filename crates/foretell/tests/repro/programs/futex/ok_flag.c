/* a flag that is waited for by a futex */
#include "../kernel/short.h"
static _Atomic int f; static int n; static long fw(int v){return syscall(SYS_futex,&f,FUTEX_WAIT_PRIVATE,v,0,0,0);} static long fk(int k){return syscall(SYS_futex,&f,FUTEX_WAKE_PRIVATE,k,0,0,0);}
static void*w(void*p){while(f==0)fw(0);n=1;return 0;} int main(){T a;GO(a,w,0);f=1;fk(1);J(a);assert(n==1);return 0;}
