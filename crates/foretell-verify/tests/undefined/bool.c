#include <assert.h>
#include <stdbool.h>
#include <string.h>
bool b;
int main(void) { memset(&b, 2, 1); int n = b; assert(n == 1 || n == 0); int a[2] = {0, 0}; a[b] = 1; assert(a[0] == 1); return 0; }
