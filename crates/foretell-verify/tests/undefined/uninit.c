#include <assert.h>
int main(void) { int x; int y = x; assert(y == x); return 0; }
