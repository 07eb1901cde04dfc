#include <assert.h>
struct s { int t; union { char c; long l; } u; };
int main(void) { struct s s = {1, {2}}; assert(s.u.l == 2); return 0; }
