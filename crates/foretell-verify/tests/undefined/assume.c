#include <assert.h>
int g;
int main(void) { __builtin_assume(g == 1); assert(g == 0); return 0; }
