/* Threads that are created in threads write a letter. Unsafe. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

char *cell;
void *first(void *arg) { cell = malloc(sizeof(char)); return 0; }
void *x(void *arg) { *cell = 'X'; return 0; }
void *y(void *arg) { *cell = 'Y'; return 0; }
void *all(void *arg) {
  pthread_t t[3];
  pthread_create(&t[0], 0, first, 0);
  pthread_join(t[0], 0);
  pthread_create(&t[1], 0, x, 0);
  pthread_create(&t[2], 0, y, 0);
  pthread_join(t[1], 0);
  pthread_join(t[2], 0);
  return 0;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, all, 0);
  pthread_join(t, 0);
  assert(cell[0] == 'X');
  return 0;
}
