#include <assert.h>
int n = 33;
int main(void) { int x = 1 << n; assert(x == 2); return 0; }
