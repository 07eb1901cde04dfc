#include <assert.h>
#include <string.h>
int main(void) { assert(strcmp(__FILE__, "file_compare.c") == 0); return 0; }
