#include <assert.h>
int a, b;
int main(void) { assert((&a < &b) != (&b < &a)); return 0; }
