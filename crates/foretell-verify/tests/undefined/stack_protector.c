#include <assert.h>
#ifdef __SSP_STRONG__
int x = 1;
#else
int x = 2;
#endif
int main(void) { assert(x == 2); return 0; }
