/* Each thread sums a half of an array and returns the sum. Unsafe. */
#include <assert.h>
#include <pthread.h>

int numbers[4] = {1, 2, 3, 4};

static int sum(const int *from, int count) {
  return count == 0 ? 0 : *from + sum(from + 1, count - 1);
}

void *half(void *arg) { return (void *)(long)sum(arg, 2); }

int main(void) {
  pthread_t t;
  void *rest;
  pthread_create(&t, 0, half, numbers + 2);
  int own = sum(numbers, 2);
  pthread_join(t, &rest);
  assert(own + (long)rest == 11);
  return 0;
}
