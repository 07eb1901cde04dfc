#include <assert.h>
int main(void) { assert(sizeof __FILE__ == sizeof "file_size.c"); return 0; }
