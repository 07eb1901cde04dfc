/* restrict parameters overlap: gcc and clang -O2 return 1. */
#include <assert.h>
int g;
static int f(int *restrict p, int *restrict q) { *p = 1; *q = 2; return *p; }
int main(void) { int r = f(&g, &g); assert(r == 2); return 0; }
