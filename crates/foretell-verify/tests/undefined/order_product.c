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
static int log_[4], n; static int f(int v) { log_[n++] = v; return v; } int main(void) { int s = f(1) + f(2) * f(3); assert(s == 7 && log_[2] == 3); return 0; }
