#include <assert.h>
__attribute__((nonnull)) static int f(int *p) { return p == 0; }
int main(void) { int *p = 0; assert(f(p) == 1); return 0; }
