#include <assert.h>
int *p;
static void f(void) { int x = 1; p = &x; }
int main(void) { f(); int *q = p; assert(q != 0); assert(q == p); return 0; }
