#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
int n; static int f(void) { return ++n; }
int main(void) { int a[2] = {[0] = f(), [0] = f()}; (void)a; assert(n == 1); return 0; }
