#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
int main(void) { const char *a = "abc", *b = "abc"; assert(a == b); return 0; }
