#include <assert.h>
struct s { int *restrict p; int *restrict q; };
int g;
int main(void) { struct s s = { &g, &g }; *s.p = 1; *s.q = 2; assert(*s.p == 2); return 0; }
