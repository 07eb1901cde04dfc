#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
int n; static int f(void) { return ++n; }
int main(void) { int a[4] = {[0 ... 3] = f()}; assert(a[3] == n); assert(n == 4 || n == 1); assert(n == 1); return 0; }
