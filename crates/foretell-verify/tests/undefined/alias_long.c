#include <assert.h>
#include <stdlib.h>
static long f(long *a, long long *b) { *a = 1; *b = 2; return *a; }
int main(void) { long *p = malloc(sizeof *p); if (!p) return 0; assert(f(p, (long long *)p) == 2); return 0; }
