#include <assert.h>
#include <stdio.h>
int main(void) { printf("%ld\n", 5); assert(1); return 0; }
