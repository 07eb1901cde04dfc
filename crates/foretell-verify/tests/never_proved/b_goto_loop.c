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
int i; for(i=0;i<5;i++){ if(i==3) goto out; } out: assert(i==5);
return 0; }
