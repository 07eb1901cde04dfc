/* b before a gives exit status 1 and a message (native rc 1); docs: whether main returns 0 counts as a branch; exit code 0 means all behaviours covered, nothing found */
#include "short.h"
static M m=MI; static int first=-1;
static void *w(void*p){ L(m); if(first<0) first=(intptr_t)p; U(m); return 0; }
int main(){ T a,b; GO(a,w,0); GO(b,w,1); J(a); J(b); if(first!=0){ fprintf(stderr,"bad order\n"); return 1; } return 0; }
