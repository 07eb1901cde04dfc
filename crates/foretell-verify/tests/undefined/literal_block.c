#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
static int use(int *a) { return a[0]; }
int main(void) {
  int *p, s = 0;
  { p = (int[]){5}; s += use(p); }
  { int a[4] = {6, 6, 6, 6}; s += use(a); }
  assert(*p == 5 && s == 11);
  return 0;
}
