/* sem_wait on a named semaphore after sem_close: SIGSEGV natively */
#include "short.h"

/* resource (semclose) released by a worker under the lock, used by main under the lock: use after release if the worker is first.
   the recorded run is the good one because the worker sleeps first */
static M m=MI; static sem_t*s;
static void *w(void*p){ usleep(1000); L(m); sem_close(s); U(m); return 0; }
int main(){ s=sem_open("/fownsem",O_CREAT,0600,1); sem_unlink("/fownsem"); T a; GO(a,w,0); L(m); sem_wait(s); sem_post(s); U(m); J(a); return 0; }
