#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
struct s { pthread_mutex_t m; int x; } a = {PTHREAD_MUTEX_INITIALIZER, 1}, b;
int main(void) { pthread_mutex_lock(&a.m); b = a; pthread_mutex_unlock(&a.m); assert(pthread_mutex_trylock(&b.m) == 0); return 0; }
