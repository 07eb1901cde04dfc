#include <assert.h>
int a[4];
int main(void) { int *p = a + 6; assert(p - 2 == a + 4); return 0; }
