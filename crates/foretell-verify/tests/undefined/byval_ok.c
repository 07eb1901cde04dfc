#include <assert.h>
struct s { int a; long b; char c[20]; };
struct t { int a; float b; };
static struct s mk(struct s x) { x.a++; x.b = 4; return x; }
static struct t mt(struct t x) { x.a++; x.b += 1; return x; }
int main(void) { struct s v = { .a = 1 }; struct s r = mk(v); struct t q = mt((struct t){1, 2}); assert(r.a == 2 && r.b == 4 && q.a == 2 && q.b == 3); return 0; }
