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
pthread_attr_t a; pthread_attr_init(&a); assert(pthread_attr_setdetachstate(&a,5)==0);
return 0; }
