#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
static const char *f(void) { return "x"; } static const char *g(void) { return "x"; }
int main(void) { assert(f() == g()); return 0; }
