#include <assert.h>
#include <pthread.h>
#include <stdio.h>
static int n; static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int get(void) { pthread_mutex_lock(&m); int v = n; pthread_mutex_unlock(&m); return v; }
static void set(int v) { pthread_mutex_lock(&m); n = v; pthread_mutex_unlock(&m); }
static void *work(void *p) { set(get() + 1); return p; }
int main(void) { FILE *f = popen("echo 5", "r"); int v = 0; assert(fscanf(f, "%d", &v) == 1); pclose(f); pthread_t a, b; pthread_create(&a, 0, work, 0); pthread_create(&b, 0, work, 0); pthread_join(a, 0); pthread_join(b, 0); assert(n == 2 && v == 5); return 0; }
