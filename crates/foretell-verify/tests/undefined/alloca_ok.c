#include <assert.h>
#include <alloca.h>
int main(void) { int *p = alloca(8); p[0] = 1; p[1] = 2; float *f = (float *)alloca(4); *f = 1; assert(p[1] == 2 && *f == 1.0f); return 0; }
