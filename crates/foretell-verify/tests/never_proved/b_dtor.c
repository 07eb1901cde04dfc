#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <errno.h>
#include <unistd.h>
int n; __attribute__((destructor)) void c(void){assert(n);}
int main(void) {

return 0; }
