/* w may read the clock after main slept 500 ms; the time goes through a global array; fails natively */
#include "short.h"
static long now(){ struct timespec t; clock_gettime(CLOCK_MONOTONIC,&t); return t.tv_sec*1000+t.tv_nsec/1000000; }
static long st[2]; static void *w(void*x){ st[1]=now(); return 0; }
int main(){ st[0]=now(); T a; GO(a,w,0); usleep(500000); J(a); long d=st[1]-st[0]; assert(d<400); return 0; }
