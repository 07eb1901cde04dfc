#include <assert.h>
static int f(int a[static 4]) { return a == 0; }
int main(void) { int *p = 0; assert(f(p) == 1); return 0; }
