#include <assert.h>
int main(void) { int next = 0;
#pragma omp parallel for ordered num_threads(2)
  for (int i = 0; i < 3; i++) {
#pragma omp ordered
    { assert(next == i); next++; } }
  return 0; }
