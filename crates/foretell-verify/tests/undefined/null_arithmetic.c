#include <assert.h>
static int f(char *p, int n) { p += n; return p != 0; }
int main(void) { assert(f(0, 1)); return 0; }
