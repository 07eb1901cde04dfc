/* A structure is copied by memcpy and compared by memcmp. Safe. */
#include <assert.h>
#include <pthread.h>
#include <string.h>

struct s { int a, b; } shared = {1, 2}; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *work(void *arg) {
  struct s mine;
  pthread_mutex_lock(&m);
  memcpy(&mine, &shared, sizeof mine);
  pthread_mutex_unlock(&m);
  struct s same = {1, 2};
  assert(memcmp(&mine, &same, sizeof mine) == 0);
  return 0;
}
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  
  return 0;
}
