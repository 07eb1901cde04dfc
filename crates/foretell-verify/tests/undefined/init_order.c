#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
int n; static int f(void) { return ++n; }
struct s { int a, b; };
int main(void) { struct s s = {.b = f(), .a = f()}; assert(s.a == 1); return 0; }
