#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
int main(void) { int x = 1, *p = &x, *q = &x; *p = (*q)++; assert(x == 1); return 0; }
