#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
static void f(void *x) { (void)x; }
int main(void) { pthread_t t; void *r = 0; pthread_create(&t, 0, (void *(*)(void *))f, 0); pthread_join(t, &r); assert(r == 0); return 0; }
