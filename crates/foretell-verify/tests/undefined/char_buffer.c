#include <assert.h>
#include <stdalign.h>
static alignas(8) char pool[64]; static int *alloc_int(void) { return (int *)pool; } int main(void) { int *p = alloc_int(); *p = 5; assert(*p == 5); return 0; }
