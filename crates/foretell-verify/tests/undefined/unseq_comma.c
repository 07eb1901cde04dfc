#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
int x = 1;
static int d(int a, int b) { return a - b; }
static void set(void) { x = 7; }
int main(void) { assert(d(x, (set(), 2)) == -1); return 0; }
