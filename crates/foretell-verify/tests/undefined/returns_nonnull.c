#include <assert.h>
__attribute__((returns_nonnull, noinline)) static int *f(void) { return 0; }
int main(void) { int *p = f(); assert(p == 0); return 0; }
