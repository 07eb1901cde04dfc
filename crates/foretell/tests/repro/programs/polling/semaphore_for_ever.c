/* A semaphore that is tried for ever: nobody posts. */
#include <pthread.h>
#include <semaphore.h>
#include <sched.h>
#include <assert.h>
static sem_t s; static int taken;
void *w(void *z) { while (sem_trywait(&s)) sched_yield(); taken++; return 0; }
int main(void) { sem_init(&s, 0, 1); pthread_t t; pthread_create(&t, 0, w, 0);
 while (sem_trywait(&s) != 0) sched_yield();
 taken++; pthread_join(t, 0); assert(taken == 2); return 0; }
