/* the word never says that somebody sleeps */
#include "../kernel/short.h"
static _Atomic int f; static int n;
static void lock(){ int e=0; while(!atomic_compare_exchange_strong(&f,&e,1)){ syscall(SYS_futex,&f,FUTEX_WAIT_PRIVATE,1,0,0,0); e=0; } }
static void un(){ if(atomic_exchange(&f,0)==2) syscall(SYS_futex,&f,FUTEX_WAKE_PRIVATE,1,0,0,0); }
static void *w(void*p){ lock(); n++; un(); return 0; }
int main(){ T a; GO(a,w,0); w(0); J(a); assert(n==2); return 0; }
