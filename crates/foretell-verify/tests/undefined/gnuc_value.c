#include <assert.h>
int main(void) { int version = __GNUC__; assert(version == 4); return 0; }
