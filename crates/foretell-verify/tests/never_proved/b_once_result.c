#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <errno.h>
#include <unistd.h>
pthread_once_t o=PTHREAD_ONCE_INIT; void i(void){}
int main(void) {
int r=pthread_once(&o,i); assert(r!=0);
return 0; }
