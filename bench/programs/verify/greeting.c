/* A string is copied by one thread and read by another behind a join. Safe. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

char *text;
void *make(void *arg) { text = malloc(8); return 0; }
void *fill(void *arg) { if (text) strcpy(text, "Bigger"); return 0; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, make, 0);
  pthread_join(a, 0);
  pthread_create(&b, 0, fill, 0);
  pthread_join(b, 0);
  assert(!text || text[0] == 'B');
  return 0;
}
