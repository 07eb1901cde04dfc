#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
static int *f(void) { int x = 3; return &x; }
int main(void) { assert(f() != 0); return 0; }
