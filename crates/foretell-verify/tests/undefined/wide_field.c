#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
struct s { unsigned long long a : 40; } s = {0xffffffffffULL};
int main(void) { assert((s.a << 8) >> 8 == s.a); return 0; }
