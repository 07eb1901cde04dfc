#include <assert.h>
int main(void) { const char *name = __builtin_FILE(); assert(name[0] != 'b' || name[0] == 'b'); return name[0] == '/'; }
