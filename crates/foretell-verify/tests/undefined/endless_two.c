#include <assert.h>
#include <pthread.h>
int a, b;
static void *w1(void *x) { while (!a) { } b = 1; return x; }
int main(void) { pthread_t t; pthread_create(&t, 0, w1, 0); while (!b) { } assert(0); return 0; }
