#include <stdio.h>
#include <stdlib.h>
static void fail(const char *file, int line) { fprintf(stderr, "%s:%d\n", file, line); abort(); }
int main(void) { int x = 1; if (x != 1) fail(__FILE__, __LINE__); return 0; }
