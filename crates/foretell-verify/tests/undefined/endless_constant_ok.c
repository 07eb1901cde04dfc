#include <assert.h>
int y;
int main(void) { while (1) { y = (y + 1) % 4; } assert(0); return 0; }
