#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
static int use(volatile int *a) { return a[0]; }
int main(void) {
  int *old = 0, s = 0;
  for (int i = 0; i < 2; i++) {
    int *p = (int[]){i + 5};
    s += use(p);
    if (old) assert(*old == 6);
    old = p;
  }
  return s == 11 ? 0 : 1;
}
