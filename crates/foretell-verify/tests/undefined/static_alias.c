#include <assert.h>
float f = 1.0f;
int main(void) { assert(*(int *)&f == 0x3f800000); return 0; }
