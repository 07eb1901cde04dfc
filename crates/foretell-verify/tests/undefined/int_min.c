#include <assert.h>
#include <stdlib.h>
#include <limits.h>
int n = INT_MIN;
int main(void) { assert(abs(n) < 0); return 0; }
