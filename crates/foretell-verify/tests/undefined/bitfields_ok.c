#include <assert.h>
struct s { unsigned a : 3, b : 9; int c : 4; char d; short e : 5; } g, *p = &g;
static void f(struct s *q) { q->a = 1; q->b = 300; q->c = -1; q->d = 'x'; q->e = 3; }
int main(void) { f(p); struct s l = g; l.b++; assert(l.b == 301 && g.c == -1 && g.e == 3 && l.a == 1); return 0; }
