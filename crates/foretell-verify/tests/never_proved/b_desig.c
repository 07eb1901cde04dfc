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
int a[4]={[2]=5,6}; assert(a[3]==0);
return 0; }
