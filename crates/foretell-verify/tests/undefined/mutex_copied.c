#include <assert.h>
#include <pthread.h>
pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b;
int main(void) { pthread_mutex_lock(&a); b = a; pthread_mutex_unlock(&a); assert(pthread_mutex_trylock(&b) == 0); return 0; }
