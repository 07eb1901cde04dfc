#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
int main(void) { int *p = malloc(4); free(p); assert(p != 0); return 0; }
