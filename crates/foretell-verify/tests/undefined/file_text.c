#include <assert.h>
static int first(const char *name) { return name[0]; }
int main(void) { assert(first(__FILE__) == 'f'); return 0; }
