#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
static int use(int *a) { return *a; }
int main(void) {
  int *p = 0;
  switch (1) { case 1: p = &(int){3}; use(p); }
  { int b[2] = {7, 7}; use(b); }
  assert(*p == 3);
  return 0;
}
