#include <assert.h>
int n = -1;
int main(void) { int x = n << 1; assert(x == -2); return 0; }
