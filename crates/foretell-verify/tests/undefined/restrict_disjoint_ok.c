#include <assert.h>
static void copy(int *restrict to, const int *restrict from) { for (int i = 0; i < 2; i++) to[i] = from[i]; }
int main(void) { int a[2] = {1, 2}, b[2]; copy(b, a); assert(b[1] == 2); return 0; }
