#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
static int n; static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *p) { void *h = dlopen("libm.so.6", RTLD_NOW); double (*c)(double) = (double (*)(double))dlsym(h, "cos"); assert(c(0) == 1); pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m); dlclose(h); return p; }
int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m); pthread_join(t, 0); assert(n == 2); return 0; }
