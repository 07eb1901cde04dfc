#include <assert.h>
int g;
__attribute__((malloc, noinline)) static int *f(void) { return &g; }
int main(void) { int *p = f(); *p = 1; g = 2; assert(*p == 2); return 0; }
