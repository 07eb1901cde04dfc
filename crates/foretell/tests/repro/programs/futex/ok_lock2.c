/* a lock whose word is 2 where somebody may sleep */
#include "../kernel/short.h"
static _Atomic int f; static int n; static long fw(int v){return syscall(SYS_futex,&f,FUTEX_WAIT_PRIVATE,v,0,0,0);} static long fk(int k){return syscall(SYS_futex,&f,FUTEX_WAKE_PRIVATE,k,0,0,0);}
static void lk(){int e=0;if(atomic_compare_exchange_strong(&f,&e,1))return; while(atomic_exchange(&f,2)!=0)fw(2);} static void ul(){if(atomic_exchange(&f,0)==2)fk(1);} static void*w(void*p){lk();n++;ul();return 0;} int main(){T a;GO(a,w,0);w(0);J(a);assert(n==2);return 0;}
