#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
struct s { char c; int i; } g = {1, 2};
int main(void) { g.c = 4; assert(((char *)&g)[2] == 0); return 0; }
