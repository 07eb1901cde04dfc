#include <assert.h>
enum e { A, B }; struct s { enum e k; unsigned n; }; static unsigned f(enum e *p) { *p = B; return *(unsigned *)p; }
int main(void) { struct s s = { A, 1 }; assert(f(&s.k) == 1); return 0; }
