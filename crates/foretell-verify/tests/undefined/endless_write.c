#include <assert.h>
int x = 1, y;
int main(void) { do { y = (y + 1) % 4; } while (x); assert(0); return 0; }
