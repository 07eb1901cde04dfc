#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
struct s { unsigned a : 3; };
int main(void) { struct s x; x = (struct s){5}; assert(*(unsigned char *)&x == 5); return 0; }
