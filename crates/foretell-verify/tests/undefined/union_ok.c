#include <assert.h>
union u { int i; float f; } u;
int main(void) { u.f = 1.0f; assert(u.i == 0x3f800000); return 0; }
