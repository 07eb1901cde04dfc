#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <errno.h>
#include <unistd.h>
void*f(void*a){assert(0);return 0;}
int main(void) {
pthread_t t; pthread_create(&t,0,f,0); pthread_exit(0);
return 0; }
