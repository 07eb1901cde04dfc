#include <assert.h>
#include <stdlib.h>
struct a { int x; }; struct b { float x; };
static int f(struct a *p, struct b *q) { struct b z = { 0 }; p->x = 1; *q = z; return p->x; }
int main(void) { void *m = malloc(4); if (!m) return 0; assert(f(m, m) == 0); return 0; }
