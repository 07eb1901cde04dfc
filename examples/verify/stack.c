/* After SV-COMP's stack: push and pop, the second check of the height is missing. Unsafe. */
#include <assert.h>
#include <pthread.h>

#define SIZE 2

int cells[SIZE], top = 0, pushed = 0;
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

void *push(void *arg) {
  pthread_mutex_lock(&m);
  cells[top] = 1;
  top++;
  pushed = 1;
  pthread_mutex_unlock(&m);
  return 0;
}

void *pop(void *arg) {
  if (pushed == 1) {
    pthread_mutex_lock(&m);
    top--;
    assert(top >= 0);
    pthread_mutex_unlock(&m);
  }
  return 0;
}

int main(void) {
  pthread_t a, b, c;
  pthread_create(&a, 0, push, 0);
  pthread_create(&b, 0, pop, 0);
  pthread_create(&c, 0, pop, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  pthread_join(c, 0);
  return 0;
}
