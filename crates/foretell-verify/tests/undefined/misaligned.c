#include <assert.h>
#include <stdlib.h>
int main(void) { char *b = malloc(16); if (!b) return 0; int *p = (int *)(b + 1); *p = 5; assert(*p == 5); return 0; }
