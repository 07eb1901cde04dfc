#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
enum e { A = -1, B = 0x80000000u };
int main(void) { assert(A < 0); assert(sizeof(B) == 8); return 0; }
