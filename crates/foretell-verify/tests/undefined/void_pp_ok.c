#include <assert.h>
#include <pthread.h>
static int x = 3;
static void *w(void *a) { return &x; }
int main(void) { pthread_t t; int *r; pthread_create(&t, 0, w, 0); pthread_join(t, (void **)&r); assert(*r == 3); return 0; }
