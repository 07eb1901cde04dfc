#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
int x = 1;
static int bump(void) { x += 10; return 1; }
int main(void) { x += bump(); assert(x == 12); return 0; }
