#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
struct s { int i; char c; };
int main(void) { struct s a = {.i = 1, .c = 2}; unsigned char b[sizeof a]; memcpy(b, &a, sizeof a); assert(b[7] == 0); return 0; }
