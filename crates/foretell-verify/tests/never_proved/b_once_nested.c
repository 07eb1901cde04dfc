#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <errno.h>
#include <unistd.h>
pthread_once_t o=PTHREAD_ONCE_INIT,q=PTHREAD_ONCE_INIT; int n; void j(void){n+=2;} void i(void){pthread_once(&q,j); n++; }
int main(void) {
pthread_once(&o,i); assert(n==2);
return 0; }
