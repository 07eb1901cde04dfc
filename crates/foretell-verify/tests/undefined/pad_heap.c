#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
struct s { char c; int i; };
int main(void) { struct s *p = calloc(1, sizeof *p); p->c = 1; p->i = 2; assert(((char *)p)[1] == 0); free(p); return 0; }
