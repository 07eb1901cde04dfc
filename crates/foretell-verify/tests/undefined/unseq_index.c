#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
static int d(int a, int b) { return a - b; }
int a[3] = {1, 2, 3};
int main(void) { int i = 1, j = 1; assert(d(a[i], a[j]++) == 0); return 0; }
