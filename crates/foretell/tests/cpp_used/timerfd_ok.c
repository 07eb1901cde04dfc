#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <unistd.h>
static int n; static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *p) { int f = timerfd_create(CLOCK_MONOTONIC, 0); struct itimerspec s = {{0, 0}, {0, 1000000}}; timerfd_settime(f, 0, &s, 0); uint64_t c; assert(read(f, &c, 8) == 8); pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m); return p; }
int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m); pthread_join(t, 0); assert(n == 2); return 0; }
