#include <assert.h>
#include <string.h>
int g = 1; float f = 1.0f;
int main(void) { unsigned char *c = (unsigned char *)&g; c[1] = 1; assert(g == 257); int i; memcpy(&i, &f, 4); assert(i == 0x3f800000); return 0; }
