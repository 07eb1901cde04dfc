#include <assert.h>
typedef int (*step)(int, const char *);
static int f(int x, const char *s) { return x + s[0]; }
static int k() { return 4; }
static const struct { step one; int (*two)(); } table = {f, k};
int main(void) { void *p = (void *)f; step s = (step)p; assert(s(1, "a") == 98 && table.one(2, "b") == 100 && (*table.two)() == 4); return 0; }
