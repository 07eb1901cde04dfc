#include <assert.h>
static int use(int *p) { return *p; }
int main(void) {
  int *p = 0, k = 1;
  { if (k) goto in; int x; in: x = 5; p = &x; use(p); }
  { int y[4] = {6, 6, 6, 6}; use(y); }
  assert(*p == 5);
  return 0;
}
