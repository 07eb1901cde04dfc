#include <assert.h>
#include <string.h>
char b[8] = "abcdefg";
int main(void) { memcpy(b, b, 8); assert(b[2] == 'c'); return 0; }
