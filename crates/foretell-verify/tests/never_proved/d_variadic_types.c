#include <assert.h>
#include <stdarg.h>
struct P { int a, b; };
struct B { long x[3]; };
struct D { double d; };
int f(int n, ...) {
  va_list l, m;
  va_start(l, n);
  va_copy(m, l);
  int a = va_arg(l, int);
  long b = va_arg(l, long);
  double c = va_arg(l, double);
  struct P p = va_arg(l, struct P);
  struct B q = va_arg(l, struct B);
  char *s = va_arg(l, char *);
  struct D d = va_arg(l, struct D);
  va_end(l);
  int again = va_arg(m, int);
  va_end(m);
  return a + b + (int)c + p.a * 2 + p.b * 3 + q.x[2] + s[0] + again + (int)d.d;
}
int main(void) {
  struct P p = {1, 2};
  struct B q = {{1, 2, 3}};
  struct D d = {2.5};
  int r = f(3, (char)-1, 1000000000000L - 999999999990L, 2.5f, p, q, "A", d);
  assert(r != 88);
  return 0;
}
