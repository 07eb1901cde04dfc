#include <assert.h>
int g;
__attribute__((pure, noinline)) static int f(int x) { g++; return g + x; }
int main(void) { f(1); assert(g == 1); return 0; }
