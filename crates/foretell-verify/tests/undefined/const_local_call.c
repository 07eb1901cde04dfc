#include <assert.h>
static void set(int *p) { *p = 2; }
int main(void) { const int x = 1; set((int *)&x); assert(x == 2); return 0; }
