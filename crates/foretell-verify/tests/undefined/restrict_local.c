#include <assert.h>
int g;
int main(void) { int *restrict p = &g; int *restrict q = &g; *p = 1; *q = 2; assert(*p == 2); return 0; }
