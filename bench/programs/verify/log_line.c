/* A line is formatted into a buffer of its own. Safe. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

int n; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *work(void *arg) { char line[32]; pthread_mutex_lock(&m); snprintf(line, sizeof line, "n=%d", n++); puts(line); pthread_mutex_unlock(&m); return 0; }
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(n == 2);
  return 0;
}
