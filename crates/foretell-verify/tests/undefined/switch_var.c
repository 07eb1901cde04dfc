#include <assert.h>
static int use(int *p) { return *p; }
int main(void) {
  int *p = 0, k = 1;
  switch (k) { int x; case 1: x = 5; p = &x; use(p); break; case 2: x = 7; p = &x; }
  { int y[4] = {6, 6, 6, 6}; use(y); }
  assert(*p == 5);
  return 0;
}
