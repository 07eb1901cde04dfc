#include <assert.h>
struct s { char c; int a; short b; } ; static int f(struct s x) { return x.a; } struct t { int a; int b; }; static int g(struct t x) { return x.a; }
int main(void) { struct s x; x.a = 1; struct t y; y.a = 2; assert(f(x) == 1 && g(y) == 2); return 0; }
