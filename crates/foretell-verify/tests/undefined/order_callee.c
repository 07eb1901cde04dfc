#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <limits.h>
#include <unistd.h>
static int one(int x) { return x + 1; } static int two(int x) { return x + 2; } static int (*f)(int) = one;
static int set(void) { f = two; return 5; } int main(void) { assert(f(set()) == 6); return 0; }
