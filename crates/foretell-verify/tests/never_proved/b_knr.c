#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <errno.h>
#include <unistd.h>
int f(c) char c; { return (unsigned char)c; }
int main(void) {
assert(f(300)==300);
return 0; }
