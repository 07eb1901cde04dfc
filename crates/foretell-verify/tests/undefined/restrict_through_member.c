#include <assert.h>
struct s { int *p; };
static int f(int *restrict p, struct s *s) { *p = 1; *s->p = 2; return *p; }
int main(void) { int x; struct s s = { &x }; assert(f(&x, &s) == 2); return 0; }
