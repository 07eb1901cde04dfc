#include <assert.h>
#include <pthread.h>
pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t c = PTHREAD_COND_INITIALIZER;
int go, n;
static void *w(void *m) { pthread_mutex_lock(m); while (!go) pthread_cond_wait(&c, m); pthread_mutex_unlock(m); return 0; }
int main(void) { pthread_t t, u; pthread_create(&t, 0, w, &a); pthread_create(&u, 0, w, &b);
  pthread_mutex_lock(&a); pthread_mutex_lock(&b); go = 1; pthread_cond_broadcast(&c); pthread_mutex_unlock(&b); pthread_mutex_unlock(&a);
  pthread_join(t, 0); pthread_join(u, 0); assert(go == 1); return 0; }
