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
pthread_mutex_t m=PTHREAD_MUTEX_INITIALIZER; struct timespec t={0,0}; assert(pthread_mutex_timedlock(&m,&t)!=0);
return 0; }
