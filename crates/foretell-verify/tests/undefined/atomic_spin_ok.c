#include <assert.h>
#include <stdatomic.h>
#include <pthread.h>
atomic_int f; int d;
static void *w(void *x) { d = 1; atomic_store(&f, 1); return x; }
int main(void) { pthread_t t; pthread_create(&t, 0, w, 0); while (!atomic_load(&f)) { } assert(d == 1); return 0; }
