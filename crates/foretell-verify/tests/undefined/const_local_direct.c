#include <assert.h>
int main(void) { const int x = 1; *(int *)&x = 2; assert(x == 2); return 0; }
