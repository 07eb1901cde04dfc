#include <assert.h>
static int f(int k) {
  if (k) goto middle;
again:;
  int x = 3;
middle:
  if (k == 2) x = 5;
  if (k-- == 2) goto again;
  return x;
}
int main(void) { assert(f(2) == 3); return 0; }
