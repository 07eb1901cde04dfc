#include <assert.h>
int g;
static int f(int *i, short *s) { *i = 0x10000; s[1] = 0; return *i; }
int main(void) { assert(f(&g, (short *)&g) == 0); return 0; }
