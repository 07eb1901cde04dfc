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
pthread_attr_t a; int d; pthread_attr_init(&a); pthread_attr_setdetachstate(&a,PTHREAD_CREATE_DETACHED); pthread_attr_getdetachstate(&a,&d); assert(d==PTHREAD_CREATE_JOINABLE);
return 0; }
