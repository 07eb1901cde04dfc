#include <assert.h>
union u { char c; int i; };
static void dirty(void) { volatile int a[64]; for (int i = 0; i < 64; i++) a[i] = -1; }
static int look(void) { union u v = {1}; return v.i; }
int main(void) { dirty(); assert(look() == 1); return 0; }
