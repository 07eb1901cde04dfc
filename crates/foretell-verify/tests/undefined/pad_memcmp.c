#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
struct s { char c; int i; };
static int same(struct s *a, struct s *b) { return memcmp(a, b, sizeof *a) == 0; }
int main(void) { struct s b = {1, 2}; struct s a; memset(&a, 0, sizeof a); a.c = 1; a.i = 2; assert(same(&a, &b)); return 0; }
