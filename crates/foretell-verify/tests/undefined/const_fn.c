#include <assert.h>
int g;
__attribute__((const, noinline)) static int f(int x) { return g + x; }
int main(void) { int a = f(1); g = 1; int b = f(1); assert(a != b); return 0; }
