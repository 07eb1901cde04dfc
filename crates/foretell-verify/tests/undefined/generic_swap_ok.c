#include <assert.h>
#include <string.h>
static void swap(void *a, void *b, unsigned long n) { unsigned char t[16]; memcpy(t, a, n); memcpy(a, b, n); memcpy(b, t, n); } int main(void) { double x = 1, y = 2; swap(&x, &y, sizeof x); int *p = 0, v, *q = &v; swap(&p, &q, sizeof p); assert(x == 2 && p == &v && q == 0); return 0; }
