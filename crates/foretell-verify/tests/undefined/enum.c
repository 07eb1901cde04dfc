#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
enum e { A = 1, B = 0x100000000LL };
int main(void) { assert(sizeof(A) == 4); return 0; }
