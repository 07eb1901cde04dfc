#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
int n; static int f(void) { return ++n; }
int main(void) { int a[2] = {f(), f()}; assert(a[0] == 1); return 0; }
