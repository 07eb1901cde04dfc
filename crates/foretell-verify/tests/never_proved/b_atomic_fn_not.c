#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <errno.h>
#include <unistd.h>
volatile int x; void __VERIFIER_atomic_up(void){x=1;} void*f(void*a){__VERIFIER_atomic_up();return 0;}
int main(void) {
pthread_t t; pthread_create(&t,0,f,0); for(int i=0;i<50000000&&!x;i++){} pthread_join(t,0); assert(x==0);
return 0; }
