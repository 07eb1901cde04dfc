#include <assert.h>
int g;
static int f(int *restrict p) { *p = 1; g = 2; return *p; }
int main(void) { assert(f(&g) == 2); return 0; }
