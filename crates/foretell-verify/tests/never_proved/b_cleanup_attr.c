#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <errno.h>
#include <unistd.h>
int n; void c(int*p){n=*p;}
int main(void) {
{ int x __attribute__((cleanup(c)))=1; } assert(n==0);
return 0; }
