#include <assert.h>
#include <string.h>
static int deep(int n) { char a[800000]; memset(a, n, sizeof a); return n ? deep(n - 1) + a[7] - n : 0; }
int main(void) { assert(deep(12) == 0); return 0; }
