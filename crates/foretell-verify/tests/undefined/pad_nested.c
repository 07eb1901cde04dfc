#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
struct in { char c; short s; }; struct s { struct in a[2]; int i; };
int main(void) { struct s x = {{{1, 2}, {3, 4}}, 5}, y = x; assert(memcmp(&x, &y, sizeof x) == 0); return 0; }
