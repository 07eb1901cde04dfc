/* A barrier of a counter and a condition that opens once. Safe. */
#include <assert.h>
#include <pthread.h>

struct barrier { int left; pthread_mutex_t m; pthread_cond_t c; } b = {2, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};
int x, y;
void pass(void) { pthread_mutex_lock(&b.m); if (--b.left == 0) pthread_cond_broadcast(&b.c); else while (b.left) pthread_cond_wait(&b.c, &b.m); pthread_mutex_unlock(&b.m); }
void *one(void *arg) { x = 1; pass(); assert(y == 1); return 0; }
void *two(void *arg) { y = 1; pass(); assert(x == 1); return 0; }
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, one, 0);
  pthread_create(&b, 0, two, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  
  return 0;
}
