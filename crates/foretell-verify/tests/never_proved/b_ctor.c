#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <errno.h>
#include <unistd.h>
int n; __attribute__((constructor)) void c(void){n=1;}
int main(void) {
assert(n==0);
return 0; }
