#include <assert.h>
struct in { int x; long y; }; struct out { char c; struct in i[2]; struct in *p; int a[3]; };
struct out g;
static long sum(struct in *q) { return q->x + q->y; }
int main(void) { g.i[1].x = 2; g.i[1].y = 3; g.p = &g.i[1]; g.a[2] = 4; int *q = g.a; q[1] = 7; struct out c = g; assert(sum(g.p) == 5 && c.a[1] == 7 && sum(&c.i[1]) == 5); return 0; }
