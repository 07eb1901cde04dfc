#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <limits.h>
#include <errno.h>
#include <stdarg.h>
#include <unistd.h>
inline int twice(int x) { return 2 * x; } int main(void) { assert(twice(2) == 4); return 0; }
