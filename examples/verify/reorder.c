/* After SV-COMP's reorder: a checker may see one write and not the other. Unsafe. */
#include <assert.h>
#include <pthread.h>

int a = 0, b = 0;

void *set(void *arg) {
  a = 1;
  b = -1;
  return 0;
}

void *check(void *arg) {
  int x = a;
  int y = b;
  assert((x == 0 && y == 0) || (x == 1 && y == -1));
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
