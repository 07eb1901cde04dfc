#include <assert.h>
static int f(int x) { return x + 1; }
/* gcc makes a trap of it */
int main(void) { assert(((unsigned (*)(unsigned))f)(1) == 2); return 0; }
