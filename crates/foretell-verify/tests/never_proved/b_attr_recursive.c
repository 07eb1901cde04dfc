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
pthread_mutexattr_t a; pthread_mutex_t m; pthread_mutexattr_init(&a); pthread_mutexattr_settype(&a,PTHREAD_MUTEX_RECURSIVE); pthread_mutex_init(&m,&a); pthread_mutex_lock(&m); assert(pthread_mutex_lock(&m)!=0);
return 0; }
