#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
static inline int k(int n) { return __builtin_constant_p(n); }
int main(void) { assert(!k(3)); return 0; }
