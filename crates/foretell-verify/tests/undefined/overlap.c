#include <assert.h>
#include <string.h>
char b[8] = "abcdefg";
int main(void) { memcpy(b + 1, b, 6); assert(b[2] == 'b'); return 0; }
