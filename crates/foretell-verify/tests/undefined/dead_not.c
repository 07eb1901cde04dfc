#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
static int *f(void) { int x = 3; int *p = &x; return p; }
int main(void) { int *p = f(); int n = !p; assert(n == 0); return 0; }
