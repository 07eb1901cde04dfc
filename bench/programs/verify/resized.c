/* A vector grows by realloc under a lock. Safe. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

int *vector; size_t length; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *add(void *arg) {
  pthread_mutex_lock(&m);
  int *grown = realloc(vector, (length + 1) * sizeof *vector);
  if (!grown) exit(1);
  vector = grown; vector[length++] = 5;
  pthread_mutex_unlock(&m);
  return 0;
}
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, add, 0);
  pthread_create(&b, 0, add, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(length == 2 && vector[0] == 5 && vector[1] == 5); free(vector);
  return 0;
}
