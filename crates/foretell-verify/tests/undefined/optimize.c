#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
int main(void) {
#ifdef __OPTIMIZE__
  assert(0);
#endif
  return 0; }
