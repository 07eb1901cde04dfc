#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
int main(void) { int *p; { int x = 1; p = &x; } if (p == 0) return 1; assert(p != 0); return 0; }
