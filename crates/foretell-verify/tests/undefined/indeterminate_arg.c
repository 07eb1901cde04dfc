#include <assert.h>
static int f(int x) { return 1; }
int main(void) { int x; assert(f(x) == 1); return 0; }
