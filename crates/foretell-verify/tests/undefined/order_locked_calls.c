#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <limits.h>
#include <unistd.h>
volatile int a, b; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static void *f(void *x) { pthread_mutex_lock(&m); a = 1; pthread_mutex_unlock(&m); pthread_mutex_lock(&m); b = 1; pthread_mutex_unlock(&m); return x; }
static int la(void) { pthread_mutex_lock(&m); int v = a; pthread_mutex_unlock(&m); return v; } static int lb(void) { pthread_mutex_lock(&m); int v = b; pthread_mutex_unlock(&m); return v; }
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); assert(lb() - la() <= 0); pthread_join(t, 0); return 0; }
