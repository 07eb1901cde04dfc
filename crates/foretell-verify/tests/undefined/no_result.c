#include <assert.h>
int g;
__attribute__((noinline)) static int f(void) { g = 1; }
int main(void) { int x = f(); assert(g == 1); return x; }
