#include <assert.h>
/* the value of x is indeterminate again each time its declaration is reached */
static int f(int k) {
  if (k) goto middle;
again:;
  int x;
middle:
  if (k == 0 || k == 2) x = 5;
  if (k-- == 2) goto again;
  return x;
}
int main(void) { assert(f(2) == 5); return 0; }
