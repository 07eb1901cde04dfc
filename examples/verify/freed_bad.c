/* A node of the heap is freed when nobody uses it any more. The pointer stays. Unsafe. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int *shared;

void *user(void *arg) {
  pthread_mutex_lock(&m);
  if (shared)
    *shared += 1;
  pthread_mutex_unlock(&m);
  return 0;
}

void *owner(void *arg) {
  pthread_mutex_lock(&m);
  free(shared);
  
  pthread_mutex_unlock(&m);
  return 0;
}

int main(void) {
  pthread_t a, b;
  shared = calloc(1, sizeof *shared);
  pthread_create(&a, 0, user, 0);
  pthread_create(&b, 0, owner, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
