#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
static int use(int *a) { return a[0]; }
int main(void) {
  int *p = 0, n = 2;
  while (n--)
    p ? (void)assert(use(p) == 5) : (void)(p = &(int){5});
  return 0;
}
