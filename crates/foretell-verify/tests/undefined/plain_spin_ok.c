#include <assert.h>
#include <pthread.h>
int f, d;
static void *w(void *x) { d = 1; f = 1; return x; }
int main(void) { pthread_t t; pthread_create(&t, 0, w, 0); while (!f) { } assert(d == 1); return 0; }
