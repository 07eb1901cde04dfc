#include <assert.h>
int main(void) { const int a[2] = {1, 2}; int *p = (int *)a; p[0] = 5; assert(a[0] == 5); return 0; }
