#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <errno.h>
#include <unistd.h>
_Thread_local int x; int *p; void *f(void*a){*p=3;return 0;}
int main(void) {
pthread_t t; p=&x; pthread_create(&t,0,f,0); pthread_join(t,0); assert(x==0);
return 0; }
