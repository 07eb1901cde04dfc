/* A string is copied without waiting for its memory. Unsafe. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

char *text;
void *make(void *arg) { text = calloc(8, 1); return 0; }
void *fill(void *arg) { if (text) strcpy(text, "Bigger"); return 0; }
int main(void) {
  pthread_t a, b;
  
  pthread_create(&a, 0, make, 0);
  pthread_create(&b, 0, fill, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(text[0] == 'B');
  return 0;
}
