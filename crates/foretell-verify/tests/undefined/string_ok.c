#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
int main(void) { const char *a = "abc", *b = a; int n = 0; for (const char *p = a; p != a + 3; p++) n++; assert(a == b && n == 3); return 0; }
