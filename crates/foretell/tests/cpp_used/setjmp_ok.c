#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int n;
static void *work(void *p) { jmp_buf b; volatile int tries = 0; if (setjmp(b) < 2) { tries++; pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m); longjmp(b, tries); } return p; }
int main(void) { pthread_t a; pthread_create(&a, 0, work, 0); pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m); pthread_join(a, 0); assert(n == 3); return 0; }
