#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
#ifndef __NO_INLINE__
#define N 1
#else
#define N 0
#endif
int main(void) { assert(N == 0); return 0; }
