/* Correct: a semaphore that is tried until it can be had. */
#include <pthread.h>
#include <semaphore.h>
#include <sched.h>
#include <assert.h>
static sem_t s; static int data;
void *w(void *z) { data = 7; sem_post(&s); return 0; }
int main(void) { sem_init(&s, 0, 0); pthread_t t; pthread_create(&t, 0, w, 0);
 while (sem_trywait(&s) != 0) sched_yield();
 assert(data == 7); pthread_join(t, 0); return 0; }
