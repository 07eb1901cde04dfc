#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
int main(void) { int x = 1, *p = &x; int a[2] = {*p, x++}; assert(a[0] == 1); return a[1] - 1; }
