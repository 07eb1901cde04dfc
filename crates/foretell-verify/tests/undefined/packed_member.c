#include <assert.h>
struct __attribute__((packed)) s { char c; int x; } g;
static int f(int *p) { *p = 1; return *p; }
int main(void) { assert(f(&g.x) == 1); return 0; }
