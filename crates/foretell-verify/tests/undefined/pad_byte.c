#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
struct s { char c; int i; };
static int look(struct s *p) { return ((unsigned char *)p)[1]; }
int main(void) { struct s b = {1, 2}; assert(look(&b) == 0); return 0; }
