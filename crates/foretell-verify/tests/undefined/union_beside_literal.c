#include <assert.h>
union u { char c; int i; };
int main(void) { int i = ((union u){.c = 1}).i; assert(i == 1); return 0; }
