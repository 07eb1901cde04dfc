#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <errno.h>
#include <unistd.h>
__thread int x[3]; int s; void *f(void*a){s=x[2];return 0;}
int main(void) {
x[2]=7; pthread_t t; pthread_create(&t,0,f,0); pthread_join(t,0); assert(s==7);
return 0; }
