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
int n = 2; static int next(void) { return n++; }
int main(void) { int a[next()][next()]; assert(sizeof a == 2 * 3 * 4 && sizeof a[0] == 12); return 0; }
