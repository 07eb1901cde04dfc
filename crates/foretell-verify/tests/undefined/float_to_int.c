#include <assert.h>
float f = 1e20f;
int main(void) { int x = (int)f; assert(x < 0); return 0; }
