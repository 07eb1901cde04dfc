#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <errno.h>
#include <unistd.h>
__thread int x; void *f(void*a){x=1;return 0;}
int main(void) {
pthread_t t; pthread_create(&t,0,f,0); pthread_join(t,0); assert(x==1);
return 0; }
