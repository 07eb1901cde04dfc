#include <assert.h>
static int use(int *p) { return *p; }
int main(void) {
  int s = 0;
  for (int k = 1; k < 3; k++)
    switch (k) { int x; case 1: x = 5; s += use(&x); break; case 2: x = 7; while (x > 4) { x--; s += use(&x); } }
  assert(s == 5 + 6 + 5 + 4);
  return 0;
}
