#include <assert.h>
#include <stdlib.h>
struct s { int x __attribute__((aligned(64))); };
int main(void) { struct s *p = malloc(sizeof *p); if (!p) return 0; p->x = 1; assert(p->x == 1); return 0; }
