#include <assert.h>
union u { int i; float f; } u;
static int f(int *i, float *x) { *i = 1; *x = 0.0f; return *i; }
int main(void) { assert(f(&u.i, &u.f) == 0); return 0; }
