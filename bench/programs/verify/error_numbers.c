/* A busy mutex is seen by errno-like codes, strerror is printed. Safe. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; int busy;
void *work(void *arg) { int e = pthread_mutex_trylock(&m); if (e == EBUSY) { perror("busy"); return 0; } assert(e == 0); busy++; pthread_mutex_unlock(&m); return 0; }
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(busy >= 0 && busy <= 2);
  return 0;
}
