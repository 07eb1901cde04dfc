#include <assert.h>
int *kept;
static void f(__attribute__((noescape)) int *p) { kept = p; }
static int twice(void) { int x = 1; f(&x); x = 2; *kept = 3; return x; }
int main(void) { assert(twice() == 3); return 0; }
