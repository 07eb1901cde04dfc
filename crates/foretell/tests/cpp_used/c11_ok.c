#include <assert.h>
#include <threads.h>
static mtx_t m; static cnd_t c; static int ready, n; static once_flag o = ONCE_FLAG_INIT; static tss_t key;
static void init(void) { n = 1; }
static void gone(void *p) { (void)p; }
static int work(void *p) { (void)p; call_once(&o, init); tss_set(key, &n); mtx_lock(&m); ready = 1; cnd_signal(&c); mtx_unlock(&m); return 7; }
int main(void) { thrd_t t; int r; mtx_init(&m, mtx_plain); cnd_init(&c); tss_create(&key, gone); assert(thrd_create(&t, work, 0) == thrd_success); call_once(&o, init);
  mtx_lock(&m); while (!ready) cnd_wait(&c, &m); mtx_unlock(&m); thrd_join(t, &r); assert(r == 7 && n == 1); return 0; }
