#include <assert.h>
#include <threads.h>
static mtx_t m; static int n;
static int get(void) { mtx_lock(&m); int v = n; mtx_unlock(&m); return v; }
static void set(int v) { mtx_lock(&m); n = v; mtx_unlock(&m); }
static int work(void *p) { (void)p; set(get() + 1); return 0; }
int main(void) { thrd_t a, b; mtx_init(&m, mtx_plain); thrd_create(&a, work, 0); thrd_create(&b, work, 0); thrd_join(a, 0); thrd_join(b, 0); assert(n == 2); return 0; }
