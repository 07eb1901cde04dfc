#include <assert.h>
#include <pthread.h>
#include <signal.h>
static volatile int n;
static void *work(void *p) { sigset_t s; int g; sigemptyset(&s); sigaddset(&s, SIGUSR1); sigwait(&s, &g); assert(n == 1); return p; }
int main(void) { sigset_t s; sigemptyset(&s); sigaddset(&s, SIGUSR1); pthread_sigmask(SIG_BLOCK, &s, 0); pthread_t t; pthread_create(&t, 0, work, 0); pthread_kill(t, SIGUSR1); n = 1; pthread_join(t, 0); return 0; }
