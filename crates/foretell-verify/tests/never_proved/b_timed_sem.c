#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <errno.h>
#include <unistd.h>

int main(void) {
sem_t s; struct timespec t={0,0}; sem_init(&s,0,0); assert(sem_timedwait(&s,&t)==0);
return 0; }
