#include <assert.h>
#include <stdarg.h>
static double sum(int n, ...) { va_list a; va_start(a, n); double s = 0; for (int i = 0; i < n; i++) s += i % 2 ? va_arg(a, double) : va_arg(a, int); va_end(a); return s; }
static int f2(int n, ...) { va_list a; va_start(a, n); void *p = va_arg(a, void *); va_end(a); return p == 0; }
int main(void) { assert(sum(2, 1, 2.0) == 3.0); assert(f2(1, (void *)0)); return 0; }
