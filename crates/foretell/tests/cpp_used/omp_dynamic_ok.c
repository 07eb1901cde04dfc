#include <assert.h>
int main(void) { int sum = 0;
#pragma omp parallel for schedule(dynamic) num_threads(2)
  for (int i = 0; i < 3; i++) {
#pragma omp atomic
    sum += i; }
  assert(sum == 3); return 0; }
