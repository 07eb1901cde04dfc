#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
static int *f(int k) { int x = k; return &x; }
int main(void) { int *p = f(1), *q = f(2); assert(p == q || p != q ? (p == q) == (p == q) && p : 0); return 0; }
