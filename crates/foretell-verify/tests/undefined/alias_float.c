#include <assert.h>
static int f(int *i, float *x) { *i = 1; *x = 0.0f; return *i; }
int main(void) { int a; int r = f(&a, (float *)&a); assert(r == 0); return 0; }
