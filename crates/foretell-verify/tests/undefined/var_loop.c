#include <assert.h>
static int use(volatile int *a) { return a[0]; }
int main(void) {
  int *old = 0, s = 0;
  for (int i = 0; i < 2; i++) {
    int x = i + 5;
    s += use(&x);
    if (old) assert(*old == 6);
    old = &x;
  }
  return s == 11 ? 0 : 1;
}
