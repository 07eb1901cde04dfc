#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <errno.h>
#include <unistd.h>
__thread int x=1; int n; void *f(void*a){n+=x; x=5; return 0;}
int main(void) {
pthread_t t; for(int i=0;i<2;i++){pthread_create(&t,0,f,0); pthread_join(t,0);} assert(n==3);
return 0; }
