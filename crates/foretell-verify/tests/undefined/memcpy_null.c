#include <assert.h>
#include <string.h>
static int f(char *to, const char *from, unsigned long n) { memcpy(to, from, n); return from == 0; }
int main(void) { char b[1]; assert(f(b, 0, 0) == 1); return 0; }
