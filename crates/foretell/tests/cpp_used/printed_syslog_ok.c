#include <assert.h>
#include <pthread.h>
#include <syslog.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int n, jobs;
static void *work(void *p) {
  pthread_mutex_lock(&m); jobs++; int mine = jobs; pthread_mutex_unlock(&m);
  syslog(LOG_DEBUG, "job %d", mine);
  pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m);
  return p; }
int main(void) { pthread_t a, b; pthread_create(&a, 0, work, 0); pthread_create(&b, 0, work, 0); pthread_join(a, 0); pthread_join(b, 0); assert(n == 2); return 0; }
