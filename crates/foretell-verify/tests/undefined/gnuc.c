#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
int main(void) {
#if __GNUC__ > 4
  assert(0);
#endif
  return 0; }
