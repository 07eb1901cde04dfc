#include <assert.h>
int n;
static int f(int x) { return n ? 0 : f(x) + 1; }
int main(void) { f(1); assert(0); return 0; }
