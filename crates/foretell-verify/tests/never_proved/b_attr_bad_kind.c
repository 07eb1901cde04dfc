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
pthread_mutexattr_t a; pthread_mutexattr_init(&a); assert(pthread_mutexattr_settype(&a,17)==0);
return 0; }
