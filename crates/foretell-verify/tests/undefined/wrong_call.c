#include <assert.h>
static int f(int a) { return a; }
int main(void) { long (*p)(long) = (long (*)(long))f; assert(p(1) == 1); return 0; }
