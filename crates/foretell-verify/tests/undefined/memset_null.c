#include <assert.h>
#include <string.h>
static int f(char *to, unsigned long n) { memset(to, 0, n); return to == 0; }
int main(void) { assert(f(0, 0) == 1); return 0; }
