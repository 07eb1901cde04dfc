#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <errno.h>
#include <unistd.h>
pthread_once_t o=PTHREAD_ONCE_INIT; int n; void i(void){int k[3]={1,2,3}; n=k[2];}
int main(void) {
int a=5; pthread_once(&o,i); int b=a+n; assert(b==5);
return 0; }
