/* pthread_atfork handlers that lock and unlock: POSIX's own example */
#include "short.h"
static M m=MI; static int n; static void pre(){ L(m);} static void post(){ U(m);}
static void *w(void*x){ L(m); n++; U(m); return 0; }
int main(){ pthread_atfork(pre,post,post); T a; GO(a,w,0); pid_t p=fork(); if(p==0){ L(m); U(m); _exit(0);} int st; waitpid(p,&st,0); assert(WIFEXITED(st)); J(a); return 0; }
