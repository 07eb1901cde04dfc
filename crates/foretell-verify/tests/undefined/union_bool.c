#include <assert.h>
#include <stdbool.h>
union { unsigned char c; bool b; } u;
int main(void) { u.c = 3; int n = u.b; assert(n == 1 || n == 3); return 0; }
