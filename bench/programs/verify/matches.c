/* Matching letters of two strings are counted under a lock. Safe. */
#include <assert.h>
#include <pthread.h>
#include <string.h>

char one[] = "abcab", two[] = "abxab"; int total; pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *count(void *arg) {
  size_t n = strlen(one), id = (size_t)arg;
  int mine = 0;
  for (size_t i = id; i < n; i += 2) if (one[i] == two[i]) mine++;
  pthread_mutex_lock(&m); total += mine; pthread_mutex_unlock(&m);
  return 0;
}
int main(void) {
  pthread_t t[2];
  for (size_t i = 0; i < 2; i++) pthread_create(&t[i], 0, count, (void *)i);
  for (size_t i = 0; i < 2; i++) pthread_join(t[i], 0);
  assert(total == 4 && strcmp(one, two) != 0);
  return 0;
}
