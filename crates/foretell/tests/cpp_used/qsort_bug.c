/* The array is sorted while the other thread searches it. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
static int compare(const void *a, const void *b) { int x = *(const int *)a, y = *(const int *)b; return (x > y) - (x < y); }
static int numbers[5] = {5, 4, 3, 2, 1};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sorted;
static void *sorter(void *p) {
  pthread_mutex_lock(&lock);
  sorted = 1;
  pthread_mutex_unlock(&lock);
  qsort(numbers, 5, sizeof(int), compare);
  return NULL;
}
static void *searcher(void *p) {
  pthread_mutex_lock(&lock);
  int ready = sorted;
  pthread_mutex_unlock(&lock);
  if (ready) {
    int key = 1;
    assert(bsearch(&key, numbers, 5, sizeof(int), compare) != NULL);
  }
  return NULL;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, NULL, sorter, NULL);
  pthread_create(&b, NULL, searcher, NULL);
  pthread_join(a, NULL);
  pthread_join(b, NULL);
}
