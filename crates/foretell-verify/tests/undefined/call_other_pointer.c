#include <assert.h>
static int f(int *p) { return *p; }
typedef int (*look)(const long *);
int main(void) { long x = 1; int y = 2; look l = (look)f; assert(l((long *)(void *)&y) == 2); return (int)x - 1; }
