#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
int g[2];
static int get(int *p, int *q) { return *p + (*q = 4); }
int main(void) { g[0] = 1; assert(get(&g[0], &g[0]) == 5); return 0; }
