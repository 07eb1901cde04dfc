#include <assert.h>
struct s { int a; float f; }; int main(void) { struct s x = { 1, 2 }; int *p = (int *)&x; *p = 7; assert(x.a == 7); struct s *q = (struct s *)p; assert(q->f == 2); return 0; }
