#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <errno.h>
#include <unistd.h>
int last; int g(void){static __thread int c; return ++c;} void *f(void*a){last=g();return 0;}
int main(void) {
pthread_t t; g(); pthread_create(&t,0,f,0); pthread_join(t,0); assert(last==2);
return 0; }
