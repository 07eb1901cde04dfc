#include <assert.h>
#include <stdlib.h>
int main(void) { int *p = malloc(4), *q; if (!p) return 0; q = p; free(p); int *r = malloc(4); assert(r != q); return 0; }
