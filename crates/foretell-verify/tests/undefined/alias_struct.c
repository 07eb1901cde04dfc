#include <assert.h>
struct a { int x; }; struct b { int x; };
static int f(struct a *p, struct b *q) { p->x = 1; q->x = 2; return p->x; }
int main(void) { struct a s; assert(f(&s, (struct b *)&s) == 2); return 0; }
