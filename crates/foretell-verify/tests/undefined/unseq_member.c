#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
struct s { int n; int a[4]; } s = {0, {1, 2, 3, 4}};
static int d(int a, int b) { return a * 10 + b; }
int main(void) { struct s *p = &s, *q = &s; assert(d(p->n, ++q->n) == 1); return 0; }
