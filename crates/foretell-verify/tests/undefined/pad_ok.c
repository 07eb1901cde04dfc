#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
struct s { char c; int i; unsigned b : 3; unsigned d : 7; };
static struct s make(int n) { struct s s = {.c = n, .i = n + 1, .b = 2}; s.d = 9; return s; }
static int sum(struct s s) { return s.c + s.i + s.b + s.d; }
int main(void) { struct s a = make(3), b = a; struct s *h = malloc(sizeof *h); *h = b; assert(sum(a) == sum(b) && sum(*h) == 18); assert(a.c == ((char *)&a)[0]); free(h); return 0; }
