#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
struct s { int a, b; } x = {1, 2}, y;
static struct s *bump(void) { x.a = 9; return &y; }
int main(void) { *bump() = x; assert(y.a == 9); return 0; }
