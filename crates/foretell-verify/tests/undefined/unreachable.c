#include <assert.h>
int g = 1;
int main(void) { if (g) __builtin_unreachable(); assert(g); return 0; }
