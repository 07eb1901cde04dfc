/* After SV-COMP's reorder: read in the opposite order, the second write is never seen alone. Safe. */
#include <assert.h>
#include <pthread.h>

int a = 0, b = 0;

void *set(void *arg) {
  a = 1;
  b = -1;
  return 0;
}

void *check(void *arg) {
  int y = b;
  int x = a;
  assert(y == 0 || x == 1);
  return 0;
}

int main(void) {
  pthread_t s, c;
  pthread_create(&s, 0, set, 0);
  pthread_create(&c, 0, check, 0);
  pthread_join(s, 0);
  pthread_join(c, 0);
  return 0;
}
