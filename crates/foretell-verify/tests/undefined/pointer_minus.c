#include <assert.h>
int a[2], b[2];
int main(void) { long d = b - a; assert(d != 0); return 0; }
