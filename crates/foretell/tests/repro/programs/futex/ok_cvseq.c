/* a condition whose number changes with each signal */
#include "../kernel/short.h"
static _Atomic int f; static int n; static long fw(int v){return syscall(SYS_futex,&f,FUTEX_WAIT_PRIVATE,v,0,0,0);} static long fk(int k){return syscall(SYS_futex,&f,FUTEX_WAKE_PRIVATE,k,0,0,0);}
static M m=MI;static int r;static void*w(void*p){L(m);while(!r){int s=f;U(m);fw(s);L(m);}U(m);return 0;} int main(){T a;GO(a,w,0);L(m);r=1;f++;U(m);fk(1);J(a);return 0;}
