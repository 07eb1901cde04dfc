/* timer may fire before the assert */
#include "short.h"
static volatile sig_atomic_t ticks; static void h(int s){ ticks++; }
static void *w(void*x){ for(volatile int i=0;i<1000;i++); return 0; }
int main(){ signal(SIGALRM,h); struct itimerval t={{0,0},{5,0}}; setitimer(ITIMER_REAL,&t,0); T a; GO(a,w,0); J(a); assert(ticks==0); return 0; }
