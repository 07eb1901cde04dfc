#include <assert.h>
#include <stdint.h>
int main(void) { static char b[32]; char *p = __builtin_assume_aligned(b + 1, 16); assert(p == b + 1); return 0; }
