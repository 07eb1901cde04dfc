#include <assert.h>
int main(void) { char *s = "ab"; s[0] = 'c'; assert(s[0] == 'c'); return 0; }
