#include <assert.h>
union u { int i; unsigned char c[4]; };
struct s { int t; union { char c; long l; } u; };
static union u g = {1};
int main(void) {
  union u v = {.i = 258};
  struct s s = {1, {.l = 2}};
  assert(v.c[1] == 1 && g.c[0] == 1 && s.u.l == 2);
  return 0;
}
