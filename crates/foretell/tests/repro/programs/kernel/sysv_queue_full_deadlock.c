/* msgsnd blocks at 16 KiB with m held; hangs natively */
#include "short.h"
static int q; struct mb{long t; char v[8000];}; static M m=MI; static int n;
static void *prod(void*x){ static struct mb b={1}; for(int i=0;i<3;i++){ L(m); n++; msgsnd(q,&b,8000,0); U(m);} return 0; }
int main(){ q=msgget(IPC_PRIVATE,0600); T t; GO(t,prod,0); static struct mb b; for(int i=0;i<3;i++){ L(m); n++; U(m); msgrcv(q,&b,8000,0,0);} J(t); msgctl(q,IPC_RMID,0); return 0; }
