/* A philosopher who puts the first fork back. Safe. */
#include <assert.h>
#include <pthread.h>


pthread_mutex_t f = PTHREAD_MUTEX_INITIALIZER, g = PTHREAD_MUTEX_INITIALIZER;
int meals, tries;
void *one(void *arg) {
  pthread_mutex_lock(&f);
  if (pthread_mutex_trylock(&g) == 0) { meals++; pthread_mutex_unlock(&g); }
  pthread_mutex_unlock(&f);
  return 0;
}
void *two(void *arg) {
  pthread_mutex_lock(&g);
  if (pthread_mutex_trylock(&f) == 0) { meals++; pthread_mutex_unlock(&f); }
  pthread_mutex_unlock(&g);
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, one, 0);
  pthread_create(&b, 0, two, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(meals >= 0 && meals <= 2);
  return 0;
}
