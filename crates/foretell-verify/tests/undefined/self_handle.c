#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
pthread_t t;
static void *f(void *x) { assert(pthread_equal(t, pthread_self())); return x; }
int main(void) { pthread_create(&t, 0, f, 0); pthread_join(t, 0); return 0; }
