#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
sem_t s;
int n;
static void *w(void *x) { sem_wait(&s); n = 1; return x; }
int main(void) { pthread_t t; sem_init(&s, 0, 0); pthread_create(&t, 0, w, 0); sem_destroy(&s); assert(n == 0); return 0; }
