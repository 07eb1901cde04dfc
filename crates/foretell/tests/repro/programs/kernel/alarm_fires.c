/* alarm(1) may fire before main comes to the assert */
#include "short.h"
static volatile sig_atomic_t late; static void h(int s){ late=1; } static M m=MI; static int n;
static void *w(void*x){ L(m); n++; U(m); return 0; }
int main(){ signal(SIGALRM,h); alarm(1); T a; GO(a,w,0); J(a); assert(!late); alarm(0); return 0; }
