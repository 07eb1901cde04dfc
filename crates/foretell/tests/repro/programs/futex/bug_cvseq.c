/* the number is read after the lock was given back */
#include "../kernel/short.h"
static _Atomic int f; static int n; static long fw(int v){return syscall(SYS_futex,&f,FUTEX_WAIT_PRIVATE,v,0,0,0);} static long fk(int k){return syscall(SYS_futex,&f,FUTEX_WAKE_PRIVATE,k,0,0,0);}
static M m=MI;static int r;static void*w(void*p){L(m);while(!r){U(m);int s=f;fw(s);L(m);}U(m);return 0;} int main(){T a;GO(a,w,0);L(m);r=1;f++;U(m);fk(1);J(a);return 0;}
