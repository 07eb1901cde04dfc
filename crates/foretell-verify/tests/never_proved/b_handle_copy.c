#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <errno.h>
#include <unistd.h>
void*f(void*a){return (void*)2;}
int main(void) {
pthread_t t,u; pthread_create(&t,0,f,0); u=t; void*r; pthread_join(u,&r); assert((long)r==1);
return 0; }
