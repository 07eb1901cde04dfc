#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
static int d(int a, int b) { return a - b; }
int main(void) { int x = 1, *p = &x, *q = &x; assert(d(*p, (*q)++) == 0); return 0; }
