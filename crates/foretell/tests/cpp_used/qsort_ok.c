/* Two threads sort and search parts of an array. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
static int compare(const void *a, const void *b) { int x = *(const int *)a, y = *(const int *)b; return (x > y) - (x < y); }
static int numbers[2][6] = {{5, 3, 9, 1, 7, 2}, {8, 6, 4, 0, 11, 10}};
static int *found[2];
static void *work(void *p) {
  long n = (long)p;
  qsort(numbers[n], 6, sizeof(int), compare);
  int key = n == 0 ? 7 : 4;
  found[n] = bsearch(&key, numbers[n], 6, sizeof(int), compare);
  return NULL;
}
int main(void) {
  pthread_t t[2];
  for (long i = 0; i < 2; i++) pthread_create(&t[i], NULL, work, (void *)i);
  for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
  assert(found[0] == &numbers[0][4] && *found[1] == 4);
}
