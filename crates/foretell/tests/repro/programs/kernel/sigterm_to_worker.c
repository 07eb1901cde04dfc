/* SIGTERM is blocked in main only; if the worker still lives, it takes the default action and the process dies (native rc 143) */
#include "short.h"
/* SIGTERM is blocked in main only, after the thread was made: the worker gets the signal and the process dies unless the worker has ended */
static void *w(void*p){ usleep(1); return 0; }
int main(){ T a; GO(a,w,0); sigset_t s; sigemptyset(&s); sigaddset(&s,SIGTERM); pthread_sigmask(SIG_BLOCK,&s,0); usleep(100000); kill(getpid(),SIGTERM); int g; sigwait(&s,&g); J(a); return 0; }
