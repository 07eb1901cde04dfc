#include <assert.h>
#include <stdlib.h>
int *shared;
static int f(int *restrict p) { *p = 1; *shared = 2; return *p; }
int main(void) { shared = malloc(sizeof *shared); if (!shared) return 0; assert(f(shared) == 2); return 0; }
